import { Text } from "@mantine/core";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { HighestMeasured } from "@/api";
import { When } from "@/parts";
import { Chart, type Series } from "@/parts/Chart";
import { type Outline, totalsOf } from "./trial";

/**
 * Fires per minute over time: of the jobs that exist and, in a colour of their own, with the hypothetical ones on top. The line is the
 * highest number of starts per minute that was measured.
 */
export function Curve({ outline, measured }: { outline: Outline; measured: HighestMeasured | null }) {
  const { t, i18n } = useTranslation("forecast");
  const times = useMemo(() => outline.perMinute.map((_, index) => new Date(outline.from).getTime() / 1_000 + index * 60), [outline]);
  const series = useMemo<Series[]>(() => {
    const existing = { label: t("curve.existing"), colour: "var(--mantine-primary-color-filled)", values: outline.perMinute, isFilled: true };
    return outline.added ? [{ label: t("curve.withAdded"), colour: "var(--horai-trial)", values: totalsOf(outline) }, existing] : [existing];
  }, [outline, t]);
  const number = (value: number): string => value.toLocaleString(i18n.language);
  return (
    <>
      <Chart label={t("map.title")} times={times} series={series} format={number} {...(measured && { limit: measured.starts })} />
      <Text size="xs" c="dimmed" mt="xs">
        {measured ? t("curve.measured", { starts: number(measured.starts), count: measured.days }) : t("curve.notMeasured")}{" "}
        {measured && <When at={measured.at} precision="minute" />}
      </Text>
    </>
  );
}
