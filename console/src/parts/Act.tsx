import { Button, type ButtonProps, Tooltip } from "@mantine/core";
import type { ButtonHTMLAttributes } from "react";
import { type Needs, useObstacle } from "@/live";

interface ActProps extends ButtonProps, Omit<ButtonHTMLAttributes<HTMLButtonElement>, keyof ButtonProps> {
  /** Why it cannot be done now; null when it can. */
  why?: string | null | undefined;
  /** The lowest role that may do it. */
  needs?: Needs;
}

/** A button that changes something. While that is not possible it stays, disabled, and says why. */
export function Act({ why, needs = "operator", onClick, ...rest }: ActProps) {
  const obstacle = useObstacle(needs);
  const reason = obstacle ?? why;
  if (!reason) {
    return <Button onClick={onClick} {...rest} />;
  }
  return (
    <Tooltip label={reason} multiline maw={320}>
      <Button {...rest} type="button" data-disabled aria-disabled onClick={(event) => event.preventDefault()} />
    </Tooltip>
  );
}
