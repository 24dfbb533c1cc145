import { ActionIcon, Menu, Text } from "@mantine/core";
import { type Needs, useObstacle } from "@/live";
import { Icon, type IconName } from "./Icon";

export interface RowAct {
  icon: IconName;
  label: string;
  onClick: () => void;
  /** Why it cannot be done now. */
  why?: string | null | undefined;
  isDangerous?: boolean;
  /** The lowest role that may do it: an operator, unless said otherwise. */
  needs?: Needs;
}

/** What can be done with a row of a table. What cannot be done now stays, disabled, and says why. */
export function RowMenu({ label, acts }: { label: string; acts: readonly RowAct[] }) {
  const obstacles = {
    operator: useObstacle("operator"),
    admin: useObstacle("admin"),
    keys: useObstacle("keys"),
    holds: useObstacle("holds"),
    platform: useObstacle("platform"),
  };
  return (
    // What happens in the menu is no click on the row, nor a step to the next one.
    <div role="presentation" onClick={(event) => event.stopPropagation()} onKeyDown={(event) => event.stopPropagation()}>
      <Menu position="bottom-end">
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" aria-label={label}>
            <Icon name="more" />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {acts.map((act) => {
            const reason = obstacles[act.needs ?? "operator"] ?? act.why;
            return (
              <Menu.Item
                key={act.label}
                leftSection={<Icon name={act.icon} size={16} />}
                onClick={act.onClick}
                disabled={Boolean(reason)}
                color={act.isDangerous ? "red" : undefined}
              >
                {act.label}
                {reason && (
                  <Text size="xs" maw={240}>
                    {reason}
                  </Text>
                )}
              </Menu.Item>
            );
          })}
        </Menu.Dropdown>
      </Menu>
    </div>
  );
}
