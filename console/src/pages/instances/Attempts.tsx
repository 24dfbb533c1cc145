import { Badge, Table } from "@mantine/core";
import { Fragment } from "react";
import { useTranslation } from "react-i18next";
import type { AttemptOut } from "@/api";
import { between, Duration, Fault, Go, StateChip, When, WideTable } from "@/parts";
import classes from "./Attempts.module.css";
import { Log } from "./Log";
import { stateOf } from "./spans";

/** Every attempt, its outcome and its log; `name` is for the files of the logs. */
export function Attempts({ attempts, name }: { attempts: readonly AttemptOut[]; name: string }) {
  const { t } = useTranslation(["instances", "common"]);
  return (
    <WideTable minWidth={760}>
      <Table verticalSpacing="xs" className={classes.table}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th w={72}>{t("attempts.number")}</Table.Th>
            <Table.Th w={180}>{t("attempts.outcome")}</Table.Th>
            <Table.Th w={200}>{t("attempts.started")}</Table.Th>
            <Table.Th w={96}>{t("column.duration")}</Table.Th>
            <Table.Th w={72}>{t("attempts.fence")}</Table.Th>
            <Table.Th>{t("attempts.error")}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {attempts.map((attempt) => (
            <Fragment key={`${attempt.fence} ${attempt.late}`}>
              <Row attempt={attempt} />
              {attempt.log.length > 0 && (
                <Table.Tr>
                  <Table.Td colSpan={6} p={0}>
                    <Log
                      lines={attempt.log}
                      name={`${name}-${attempt.attempt}`}
                      aside={
                        <Go to="/instances/$instance/log" params={{ instance: name }} search={{ attempt: String(attempt.fence) } as never} size="xs">
                          {t("log.page")}
                        </Go>
                      }
                    />
                  </Table.Td>
                </Table.Tr>
              )}
            </Fragment>
          ))}
        </Table.Tbody>
      </Table>
    </WideTable>
  );
}

function Row({ attempt }: { attempt: AttemptOut }) {
  const { t } = useTranslation(["instances", "common"]);
  return (
    <Table.Tr>
      <Table.Td className="numbers">{attempt.attempt}</Table.Td>
      <Table.Td>
        <Outcome attempt={attempt} />{" "}
        {attempt.late && (
          <Badge color="gray" variant="light" title={t("attempts.lateHint")}>
            {t("attempts.late")}
          </Badge>
        )}
      </Table.Td>
      <Table.Td>
        <When at={attempt.startedAt} precision="millis" />
      </Table.Td>
      <Table.Td>
        <Duration ms={between(attempt.startedAt, attempt.finishedAt)} />
      </Table.Td>
      <Table.Td className="numbers">{attempt.fence}</Table.Td>
      <Table.Td className={classes.error}>
        {attempt.errorCode && <Fault code={attempt.errorCode} message={attempt.errorMsg} />}
      </Table.Td>
    </Table.Tr>
  );
}

function Outcome({ attempt }: { attempt: AttemptOut }) {
  const { t } = useTranslation("instances");
  if (attempt.outcome === "RELEASED") return t("attempts.released");
  if (attempt.outcome === "LOST") return <span title={t("attempts.lostHint")}>{t("attempts.lost")}</span>;
  return <StateChip state={stateOf(attempt)} />;
}
