import { Anchor, type AnchorProps, Button, type ButtonProps } from "@mantine/core";
import { createLink } from "@tanstack/react-router";
import type { AnchorHTMLAttributes, Ref } from "react";

type Native = Omit<AnchorHTMLAttributes<HTMLAnchorElement>, keyof AnchorProps> & { ref?: Ref<HTMLAnchorElement> };

/** A link to a page of the console: `<Go to="/instances" search={{ state: "DEAD" }}>`. */
export const Go = createLink((props: AnchorProps & Native) => <Anchor {...props} />);

/** The same, as a button. */
export const GoButton = createLink((props: ButtonProps & Native) => <Button component="a" {...props} />);
