import { useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { deleteRule, getRules, putRule, type RuleOut } from "@/api";
import { useMay } from "@/live";
import { Act, type Column, ConfirmDialog, DataTable, EmptyState, Icon, RowMenu } from "@/parts";
import { ruleSetting } from "./recipes";
import { bodyOf, draftOf, watchedBy } from "./rule";
import { RuleForm } from "./RuleForm";
import { Section } from "./Section";

type RuleAct = "edit" | "switch" | "delete";

/** The rules by name: created, changed, switched on and off, and deleted. */
export function Rules() {
  const { t } = useTranslation("alerts");
  const may = useMay();
  const [isCreating, create] = useState(false);
  const [chosen, choose] = useState<{ rule: RuleOut; act: RuleAct } | null>(null);
  const columns = useColumns(choose);
  const of = (act: RuleAct): RuleOut | null => (chosen?.act === act ? chosen.rule : null);
  const close = (): void => {
    create(false);
    choose(null);
  };
  return (
    <Section
      title={t("rules.title")}
      aside={
        may("keys") && (
          <Act needs="keys" size="xs" onClick={() => create(true)} leftSection={<Icon name="plus" size={16} />}>
            {t("rules.create")}
          </Act>
        )
      }
    >
      <DataTable<RuleOut>
        label={t("rules.title")}
        queryKey={["alerts", "rules"]}
        fetchPage={(cursor, signal) => getRules({ limit: 100, ...(cursor && { cursor }) }, { signal })}
        columns={columns}
        idOf={(rule) => rule.name}
        empty={
          <EmptyState icon="alerts" title={t("rules.none")} command="horai alerts set-rule dead INSTANCE_DEAD --channel ops">
            {t("rules.explain")}
          </EmptyState>
        }
      />
      <RuleForm opened={isCreating || of("edit") !== null} changed={of("edit")} onClose={close} />
      <SwitchDialog rule={of("switch")} onClose={close} />
      <DeleteDialog rule={of("delete")} onClose={close} />
    </Section>
  );
}

function useColumns(choose: (chosen: { rule: RuleOut; act: RuleAct }) => void): Column<RuleOut>[] {
  const { t } = useTranslation("alerts");
  const may = useMay();
  return useMemo(
    () => [
      { id: "name", header: t("name"), width: "minmax(120px, 1fr)", cell: (rule) => rule.name },
      { id: "kind", header: t("condition"), width: "minmax(180px, 1.5fr)", cell: (rule) => t(`kind.${rule.kind}`) },
      { id: "watches", header: t("rules.watches"), width: "minmax(160px, 1.5fr)", cell: (rule) => watchedBy(rule) || t("rules.all") },
      { id: "channels", header: t("channels.title"), width: "minmax(120px, 1fr)", cell: (rule) => rule.channels.join(", ") },
      { id: "enabled", header: t("rules.state"), width: "110px", cell: (rule) => t(rule.enabled ? "rules.on" : "rules.off") },
      ...(may("keys")
        ? [
            {
              id: "acts",
              header: "",
              width: "56px",
              cell: (rule: RuleOut) => (
                <RowMenu
                  label={t("menu", { name: rule.name })}
                  acts={[
                    { icon: "edit", label: t("edit"), needs: "keys", onClick: () => choose({ rule, act: "edit" }) },
                    {
                      icon: rule.enabled ? "pause" : "play",
                      label: t(rule.enabled ? "rules.disable" : "rules.enable"),
                      needs: "keys",
                      onClick: () => choose({ rule, act: "switch" }),
                    },
                    { icon: "trash", label: t("delete"), isDangerous: true, needs: "keys", onClick: () => choose({ rule, act: "delete" }) },
                  ]}
                />
              ),
            },
          ]
        : []),
    ],
    [t, may, choose],
  );
}

function SwitchDialog({ rule, onClose }: { rule: RuleOut | null; onClose: () => void }) {
  const { t } = useTranslation("alerts");
  const queries = useQueryClient();
  const verb = rule?.enabled ? "disable" : "enable";
  const body = rule && { ...bodyOf(draftOf(rule, rule.kind)), enabled: !rule.enabled };
  return (
    <ConfirmDialog
      opened={rule !== null}
      onClose={onClose}
      title={t(`rules.${verb}Title`, { name: rule?.name })}
      confirm={t(`rules.${verb}`)}
      needs="keys"
      {...(rule && body && { recipe: ruleSetting(rule.name, body, false) })}
      onConfirm={async () => {
        if (rule && body) await putRule(rule.name, body, { headers: { "If-Match": `"${rule.version}"` } });
        await queries.invalidateQueries({ queryKey: ["alerts"] });
      }}
    >
      {t(`rules.${verb}Explain`)}
    </ConfirmDialog>
  );
}

function DeleteDialog({ rule, onClose }: { rule: RuleOut | null; onClose: () => void }) {
  const { t } = useTranslation("alerts");
  const queries = useQueryClient();
  return (
    <ConfirmDialog
      opened={rule !== null}
      onClose={onClose}
      title={t("rules.deleteTitle", { name: rule?.name })}
      confirm={t("rules.delete")}
      needs="keys"
      isDangerous
      recipe={{ method: "DELETE", path: `/api/v1/alerts/rules/${rule?.name}`, cli: `horai alerts delete-rule ${rule?.name}` }}
      onConfirm={async () => {
        if (rule) await deleteRule(rule.name, { headers: { "If-Match": `"${rule.version}"` } });
        await queries.invalidateQueries({ queryKey: ["alerts"] });
      }}
    >
      {t("rules.deleteExplain")}
    </ConfirmDialog>
  );
}
