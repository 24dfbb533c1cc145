import { Table, Text } from "@mantine/core";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { RunOut } from "@/api";
import { Panel, WideTable } from "@/parts";
import { differencesOf } from "./differences";

/** The members in which the payloads of two runs differ. */
export function Payloads({ left, right }: { left: RunOut; right: RunOut }) {
  const { t } = useTranslation("workflows");
  const found = useMemo(() => differencesOf(left.payload, right.payload), [left.payload, right.payload]);
  return (
    <Panel title={t("compare.payload")}>
      {found.length === 0 ? (
        <Text size="sm" c="dimmed">
          {t("compare.samePayload")}
        </Text>
      ) : (
        <WideTable minWidth={560}>
          <Table aria-label={t("compare.payload")} style={{ tableLayout: "fixed" }}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>{t("compare.path")}</Table.Th>
                <Table.Th>{t("run.title", { id: left.id })}</Table.Th>
                <Table.Th>{t("run.title", { id: right.id })}</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {found.map((one) => (
                <Table.Tr key={one.path} style={{ overflowWrap: "anywhere" }}>
                  <Table.Td>
                    <code>{one.path || t("compare.whole")}</code>
                  </Table.Td>
                  <Value value={one.left} />
                  <Value value={one.right} />
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </WideTable>
      )}
    </Panel>
  );
}

function Value({ value }: { value: unknown }) {
  return <Table.Td>{value === undefined ? <span aria-hidden>–</span> : <code>{JSON.stringify(value)?.slice(0, 500)}</code>}</Table.Td>;
}
