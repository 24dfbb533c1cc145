import { Group, Stack, Table, Text } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { FigureOut, GovernorOut, ModeOut, ThresholdsOut } from "@/api";
import { wordsOf } from "@/i18n";
import { Icon, Panel, RowMenu, When, WideTable } from "@/parts";
import { type Forced, ForceDialog } from "./ForceDialog";

/** The rules: the figure of each beside its threshold, its level, and why. */
export function Modes({ governor, thresholds }: { governor: GovernorOut; thresholds: ThresholdsOut }) {
  const { t } = useTranslation("governor");
  const [forced, force] = useState<Forced | null>(null);
  const actions = governor.actions.map((action) => wordsOf(action.text, action.textSaid));
  return (
    <Panel title={t("modes.title")} aside={governor.dryRun && <Text size="sm">{t("modes.dryRun")}</Text>}>
      <WideTable minWidth={640}>
        <Table aria-label={t("modes.title")}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{t("modes.mode")}</Table.Th>
              <Table.Th>{t("modes.figure")}</Table.Th>
              <Table.Th>{t("modes.level")}</Table.Th>
              <Table.Th aria-label={t("modes.acts")} />
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {governor.rules.map((rule) => (
              <Rule key={rule.mode} rule={rule} figure={thresholds.figures.find((figure) => figure.mode === rule.mode)} onForce={force} />
            ))}
          </Table.Tbody>
        </Table>
      </WideTable>
      <Text size="sm" mt="md">
        {actions.length > 0 ? actions.join(" ") : t("modes.noAction")}
      </Text>
      <ForceDialog forced={forced} onClose={() => force(null)} />
    </Panel>
  );
}

function Rule({ rule, figure, onForce }: { rule: ModeOut; figure: FigureOut | undefined; onForce: (forced: Forced) => void }) {
  const { t } = useTranslation("governor");
  return (
    <Table.Tr>
      <Table.Td>
        <Text size="sm" fw={600}>
          {rule.mode}
        </Text>
        <Text size="xs" c="dimmed">
          {t(`modes.about.${rule.mode}`)}
        </Text>
      </Table.Td>
      <Table.Td>{figure ? <Figure figure={figure} /> : t("modes.hidden")}</Table.Td>
      <Table.Td>
        <Level rule={rule} />
      </Table.Td>
      <Table.Td>
        <RowMenu
          label={t("modes.menu", { mode: rule.mode })}
          acts={[
            { icon: "play", label: t("force.ON.act"), needs: "platform", onClick: () => onForce({ mode: rule.mode, state: "ON" }) },
            { icon: "pause", label: t("force.OFF.act"), needs: "platform", onClick: () => onForce({ mode: rule.mode, state: "OFF" }) },
            {
              icon: "replay",
              label: t("force.AUTO.act"),
              needs: "platform",
              why: rule.override === null ? t("force.noOverride") : null,
              onClick: () => onForce({ mode: rule.mode, state: "AUTO" }),
            },
          ]}
        />
      </Table.Td>
    </Table.Tr>
  );
}

function Figure({ figure }: { figure: FigureOut }) {
  const { t, i18n } = useTranslation("governor");
  const format = new Intl.NumberFormat(i18n.language, figure.name === "runSuccessRate10m" ? { style: "percent", maximumFractionDigits: 2 } : {});
  const value = t(`modes.unit.${figure.name}`, { value: format.format(figure.value) });
  const limit = t(`modes.unit.${figure.name}`, { value: format.format(figure.limit) });
  return (
    <Stack gap={0}>
      <Group gap={4}>
        {figure.breached && <Icon name="warning" size={16} />}
        <Text size="sm" fw={600}>
          {value}
        </Text>
      </Group>
      <Text size="xs" c="dimmed">
        {t(figure.breached ? "modes.breaches" : "modes.within", { limit })}
        {figure.samples !== null && ` · ${t("modes.samples", { count: figure.samples })}`}
      </Text>
    </Stack>
  );
}

function Level({ rule }: { rule: ModeOut }) {
  const { t } = useTranslation("governor");
  return (
    <Stack gap={2}>
      <Group gap="xs">
        {rule.level > 0 && <Icon name="warning" size={16} />}
        <Text size="sm" fw={rule.level > 0 ? 700 : 400}>
          {rule.level > 0 ? t("modes.active", { level: rule.level }) : t("modes.inactive")}
        </Text>
        {rule.wouldBeLevel !== rule.level && <Text size="xs">{t("modes.wouldBe", { level: rule.wouldBeLevel })}</Text>}
        {rule.override !== null && (
          <Text size="sm" fw={600}>
            {t(`modes.override.${rule.override}`)}
          </Text>
        )}
      </Group>
      {rule.since !== null && (
        <Text size="xs" c="dimmed">
          {t("modes.since")} <When at={rule.since} as="relative" />
          {rule.overrideExpiresAt !== null && (
            <>
              {" · "}
              {t("modes.until")} <When at={rule.overrideExpiresAt} />
            </>
          )}
        </Text>
      )}
      {rule.cause !== null && <Text size="xs">{wordsOf(rule.cause.text, rule.cause.textSaid)}</Text>}
    </Stack>
  );
}
