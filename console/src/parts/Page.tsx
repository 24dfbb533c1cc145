import { Stack, Text, Title } from "@mantine/core";
import { type ReactNode, useEffect } from "react";
import classes from "./Page.module.css";

interface PageProps {
  title: string;
  /** One sentence that says what this page is for. */
  lead?: ReactNode;
  /** The buttons of the page, at its right. */
  actions?: ReactNode;
  /** A link back to the list, a state, whatever belongs before the title. */
  above?: ReactNode;
  children: ReactNode;
}

/** The frame of every page: its title, also in the browser's tab, its actions, and its content. */
export function Page({ title, lead, actions, above, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Horai`;
  }, [title]);
  return (
    <Stack gap="lg">
      <div className={classes.head}>
        <div className={classes.title}>
          {above}
          <Title order={1} style={{ overflowWrap: "anywhere" }}>
            {title}
          </Title>
          {lead && (
            <Text c="dimmed" mt={4} maw="44rem">
              {lead}
            </Text>
          )}
        </div>
        {actions && <div className={classes.actions}>{actions}</div>}
      </div>
      {children}
    </Stack>
  );
}
