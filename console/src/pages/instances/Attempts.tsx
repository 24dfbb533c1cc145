import { Badge, Table } from "@mantine/core";
import { Fragment, useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import type { AttemptOut } from "@/api";
import { between, Duration, Fault, StateChip, When } from "@/parts";
import classes from "./Attempts.module.css";
import { stateOf } from "./spans";

/** Every try, with what came of it, and what its function said. */
export function Attempts({ attempts }: { attempts: readonly AttemptOut[] }) {
  const { t } = useTranslation(["instances", "common"]);
  return (
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
              {attempt.log.length > 0 && <Said attempt={attempt} />}
            </Fragment>
          ))}
        </Table.Tbody>
      </Table>
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

function Said({ attempt }: { attempt: AttemptOut }) {
  const { t } = useTranslation(["instances", "common"]);
  const lines = useRef<HTMLOListElement>(null);
  const last = attempt.log.at(-1)?.at;
  useEffect(() => {
    if (last) lines.current?.scrollTo({ top: lines.current.scrollHeight });
  }, [last]);
  return (
    <Table.Tr>
      <Table.Td />
      <Table.Td colSpan={5} p={0}>
        {/* Many lines scroll, so the keyboard must reach them. */}
        {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
        <ol className={classes.log} tabIndex={0} aria-label={t("attempts.log")} ref={lines}>
          {attempt.log.map((line) => (
            <li key={`${line.at} ${line.message}`}>
              <When at={line.at} precision="millis" />
              <span className="numbers">{line.progress === null ? "" : `${Math.round(line.progress * 100)} %`}</span>
              <bdi>{line.message}</bdi>
            </li>
          ))}
        </ol>
      </Table.Td>
    </Table.Tr>
  );
}
