import { Badge, Group, Stack, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { AppliedOut, ApplyAnswer } from "@/api";
import { messageOf } from "@/api";
import { Panel } from "@/parts";
import { wordsOf } from "@/i18n/said";
import { Changes } from "@/parts/versions/Changes";
import { DeclaredWarning } from "@/parts/versions/ReviewDialog";
import { lineAt, type YamlDocument } from "./yaml";

const COLOURS = { created: "green", changed: "blue", unchanged: "gray", refused: "red" } as const;
const ORDER = ["refused", "changed", "created", "unchanged"] as const;

interface FatesProps {
  answer: ApplyAnswer;
  documents: readonly YamlDocument[];
  /** The text was changed since. */
  isOutdated: boolean;
}

/** What each definition would do, or has done; a wrong field with its line. */
export function Fates({ answer, documents, isOutdated }: FatesProps) {
  const { t } = useTranslation("definitions");
  const fates = answer.items.map((item, place) => ({ item, document: documents[place], place }));
  const sorted = fates.toSorted((one, other) => ORDER.indexOf(one.item.action) - ORDER.indexOf(other.item.action) || one.place - other.place);
  return (
    <Panel
      title={answer.dryRun ? t("check.title") : t("apply.title")}
      aside={isOutdated && <Text size="sm" c="var(--horai-warn)">{t("check.outdated")}</Text>}
    >
      <Stack gap="md" component="ul" m={0} p={0} style={{ listStyle: "none" }}>
        {sorted.map(({ item, document, place }) => (
          <li key={place}>
            <Group gap="xs">
              <Badge color={COLOURS[item.action]} variant="light" tt="none">
                {t(answer.dryRun ? `wouldBe.${item.action}` : `action.${item.action}`)}
              </Badge>
              <Text size="sm" fw={600} style={{ overflowWrap: "anywhere" }}>
                {item.name || t("unnamed")}
              </Text>
              <Text size="xs" c="dimmed">
                {t(`kind.${item.kind}`, item.kind)}
              </Text>
            </Group>
            {item.action === "refused" && <Reasons item={item} {...(document && { document })} />}
            {item.action === "changed" && <Changes changes={item.changes} />}
            {item.action === "changed" && item.declaredBy && <DeclaredWarning app={item.declaredBy} />}
          </li>
        ))}
      </Stack>
    </Panel>
  );
}

function Reasons({ item, document }: { item: AppliedOut; document?: YamlDocument }) {
  const { t } = useTranslation("definitions");
  const errors = item.errors.map((error) => ({ field: error.field, told: messageOf(error) }));
  const told = errors.length > 0 ? errors : [{ field: "", told: wordsOf(item.reason ?? "", item.reasonSaid ?? undefined) }];
  return (
    <Stack gap={2} mt={4} role="alert">
      {told.map((reason) => (
        <Text size="sm" c="var(--horai-bad)" key={reason.field} style={{ overflowWrap: "anywhere" }}>
          {document && t("fault.line", { line: lineAt(document, reason.field) })} {reason.field && <code>{reason.field}</code>} {reason.told}
        </Text>
      ))}
    </Stack>
  );
}
