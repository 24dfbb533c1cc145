import { Button, Group, Menu, Modal, Stack, Text } from "@mantine/core";
import { useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { ErrorView } from "./ErrorView";
import { csvOf, gather, MOST_ROWS, save } from "./files";
import { Icon } from "./Icon";
import { ProgressBar } from "./ProgressBar";
import { useWork } from "./useWork";

interface DownloadProps<Row extends object> {
  /** Of the file, without its ending. */
  name: string;
  /** A page of what matches the filters now. */
  fetchPage: (cursor: string | undefined) => Promise<{ items: readonly Row[]; nextCursor: string | null }>;
  /** What CSV has; JSON has everything. */
  columns: readonly (keyof Row & string)[];
}

/** A list as a file: what matches the filters, in the order of the list, up to a bound that is said. */
export function Download<Row extends object>({ name, fetchPage, columns }: DownloadProps<Row>) {
  const { t, i18n } = useTranslation();
  const [format, setFormat] = useState<"csv" | "json" | null>(null);
  const rows = useRef<Row[]>([]);
  const work = useWork();
  const most = new Intl.NumberFormat(i18n.language).format(MOST_ROWS);

  function begin(wanted: "csv" | "json"): void {
    rows.current = [];
    setFormat(wanted);
    work.start(gather(fetchPage, rows.current));
  }

  function hand(): void {
    if (format === "csv") save(`${name}.csv`, "text/csv", csvOf(rows.current, columns));
    else save(`${name}.json`, "application/json", JSON.stringify(rows.current, null, 1));
    setFormat(null);
  }

  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <Button variant="default" leftSection={<Icon name="download" size={16} />}>
            {t("download.open")}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Label>{t("download.bound", { most })}</Menu.Label>
          <Menu.Item onClick={() => begin("csv")}>{t("download.csv")}</Menu.Item>
          <Menu.Item onClick={() => begin("json")}>{t("download.json")}</Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <Modal opened={format !== null} onClose={() => { work.stop(); setFormat(null); }} title={t("download.open")}>
        <Stack gap="md">
          <ProgressBar
            label={t("download.open")}
            done={work.tally.done}
            total={work.phase === "done" ? work.tally.done : MOST_ROWS}
            tone={work.phase === "done" ? "done" : "running"}
          />
          <Text size="sm" c="dimmed">
            {t(work.tally.done >= MOST_ROWS ? "download.cut" : "download.explain", { most })}
          </Text>
          <ErrorView error={work.error} />
          <Group justify="flex-end">
            {work.phase === "done" ? (
              <Button onClick={hand}>{t("download.save")}</Button>
            ) : (
              <Button variant="default" loading={work.phase === "stopping"} onClick={work.stop}>
                {t("download.stop")}
              </Button>
            )}
          </Group>
        </Stack>
      </Modal>
    </>
  );
}
