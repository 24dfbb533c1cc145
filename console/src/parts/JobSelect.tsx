import { Select, type SelectProps } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { getJobs } from "@/api";

interface JobSelectProps extends Omit<SelectProps, "value" | "onChange" | "data"> {
  /** The name of a job, or an empty text. */
  value: string;
  onChange: (job: string | undefined) => void;
}

/** One of the jobs, found by a part of its name. */
export function JobSelect({ value, onChange, ...rest }: JobSelectProps) {
  const { t } = useTranslation();
  const [typed, setTyped] = useState(value);
  const [asked] = useDebouncedValue(typed === value ? "" : typed.trim(), 200);
  const jobs = useQuery({
    queryKey: ["jobs", "names", asked],
    queryFn: ({ signal }) => getJobs({ limit: 50, ...(asked && { nameContains: asked }) }, { signal }),
    placeholderData: keepPreviousData,
  });
  const names = (jobs.data?.items ?? []).map((job) => job.name);
  return (
    <Select
      placeholder={t("filter.any")}
      {...rest}
      clearable
      searchable
      data={value && !names.includes(value) ? [value, ...names] : names}
      filter={({ options }) => options}
      value={value || null}
      searchValue={typed}
      onSearchChange={setTyped}
      onChange={(chosen) => onChange(chosen ?? undefined)}
    />
  );
}
