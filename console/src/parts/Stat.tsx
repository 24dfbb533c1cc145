import { Paper, Skeleton, Text } from "@mantine/core";
import { type LinkProps, useRouter } from "@tanstack/react-router";
import type { ReactNode } from "react";
import classes from "./Stat.module.css";

interface StatProps {
  label: ReactNode;
  /** Undefined while it is on its way. */
  value: ReactNode | undefined;
  hint?: ReactNode;
  tone?: "good" | "warn" | "bad";
  /** A number is a link to its list: `to="/instances" search={{ state: "DEAD" }}`. */
  to?: LinkProps["to"];
  search?: Record<string, string>;
}

/** One number that matters. */
export function Stat({ label, value, hint, tone, to, search }: StatProps) {
  const content = (
    <>
      <Text size="sm" c="dimmed">
        {label}
      </Text>
      {value === undefined ? (
        <Skeleton height={28} width="50%" mt={4} />
      ) : (
        <Text className="numbers" fz={22} lh="32px" fw={600} c={tone && `var(--horai-${tone})`}>
          {value}
        </Text>
      )}
      <Text size="xs" c="dimmed" mih={18}>
        {hint}
      </Text>
    </>
  );
  return to ? (
    <StatLink to={to} search={search}>
      {content}
    </StatLink>
  ) : (
    <Paper p="md">{content}</Paper>
  );
}

function StatLink({ to, search, children }: { to: LinkProps["to"]; search?: Record<string, string> | undefined; children: ReactNode }) {
  const router = useRouter();
  const target = { to: to as string, search: (search ?? {}) as never };
  return (
    <Paper
      p="md"
      component="a"
      className={classes.link}
      href={router.buildLocation(target).href}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
        event.preventDefault();
        void router.navigate(target);
      }}
    >
      {children}
    </Paper>
  );
}
