import { Button, Group, Modal, NumberInput, Stack, Textarea, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { areAllShown, fieldErrors, getTenant, patchTenant, type QuotasIn, type TenantDetail, type TenantOut, type TenantPatch } from "@/api";
import { Act, CheckedForm, CopyAs, ErrorView, useDraft, useTextChecks } from "@/parts";
import { Restored } from "@/parts/Restored";
import { tenantSetting } from "./recipes";

const NUMBERS = ["jobs", "liveInstances", "enqueuePerSecond", "payloadBytes", "concurrency"] as const;
const TIMES = ["keepHistory", "keepDeadLetters"] as const;
const FIELDS = ["weight", ...TIMES, ...NUMBERS.map((name) => `quotas.${name}`)];

interface QuotaDraft {
  weight: number;
  quotas: QuotasIn;
  networks: string;
  times: { keepHistory: string; keepDeadLetters: string };
}

/** The weight, the quotas and the retention of a tenant, to be changed. */
export function TenantForm({ tenant, onClose }: { tenant: TenantOut | null; onClose: () => void }) {
  const { t } = useTranslation("access");
  return (
    <Modal opened={tenant !== null} onClose={onClose} title={t("quotas.title", { name: tenant?.name })}>
      {tenant && <Loaded name={tenant.name} onClose={onClose} />}
    </Modal>
  );
}

function Loaded({ name, onClose }: { name: string; onClose: () => void }) {
  const found = useQuery({ queryKey: ["tenants", "detail", name], queryFn: ({ signal }) => getTenant(name, { signal }), gcTime: 0 });
  return found.data ? <Form tenant={found.data} onClose={onClose} /> : <ErrorView error={found.error} />;
}

function Form({ tenant, onClose }: { tenant: TenantDetail; onClose: () => void }) {
  const { t } = useTranslation(["access", "tenant", "common"]);
  const queries = useQueryClient();
  const kept = useDraft<QuotaDraft>(`tenant ${tenant.name} ${tenant.version}`, {
    weight: tenant.weight,
    quotas: tenant.quotas,
    networks: tenant.quotas.callbackNetworks?.join("\n") ?? "",
    times: { keepHistory: tenant.keepHistory ?? "", keepDeadLetters: tenant.keepDeadLetters ?? "" },
  });
  const { weight, quotas, networks, times } = kept.draft;
  const change = (part: Partial<QuotaDraft>) => kept.change((before) => ({ ...before, ...part }));
  const checks = useTextChecks({ keepHistory: ["duration", times.keepHistory], keepDeadLetters: ["duration", times.keepDeadLetters] });
  const listed = networks.split(/[\s,]+/).filter(Boolean);
  const wish: TenantPatch = { weight, quotas: { ...quotas, callbackNetworks: listed.length === 0 ? null : listed }, keepHistory: times.keepHistory.trim() || null, keepDeadLetters: times.keepDeadLetters.trim() || null };
  const saving = useMutation({
    mutationFn: () => patchTenant(tenant.name, wish, { headers: { "If-Match": `"${tenant.version}"` } }),
    onSuccess: async () => {
      kept.forget();
      await queries.invalidateQueries({ queryKey: ["tenants"] });
      await queries.invalidateQueries({ queryKey: ["tenant"] });
      onClose();
    },
  });
  const faults: Record<string, string> = { ...fieldErrors(saving.error), ...checks };
  const inNetworks = Object.entries(faults).find(([field]) => field.startsWith("quotas.callbackNetworks"))?.[1];
  return (
    <CheckedForm checks={checks} onSubmit={() => saving.mutate()}>
      {() => (
        <Stack gap="md">
          <Restored draft={kept} />
          <NumberInput
            label={t("tenant:weight")}
            description={t("quotas.weightHint")}
            allowDecimal={false}
            value={weight}
            onChange={(value) => change({ weight: Number(value) })}
            error={faults["weight"]}
          />
          {NUMBERS.map((name) => (
            <NumberInput
              key={name}
              label={t(`tenant:${name}`)}
              placeholder={t("tenant:noLimit")}
              allowDecimal={false}
              value={quotas[name] ?? ""}
              onChange={(value) => change({ quotas: { ...quotas, [name]: value === "" ? null : Number(value) } })}
              error={faults[`quotas.${name}`]}
            />
          ))}
          <Textarea
            label={t("tenant:callbackNetworks")}
            description={t("quotas.networksHint")}
            placeholder={t("tenant:publicNetworks")}
            autosize
            value={networks}
            onChange={(event) => change({ networks: event.currentTarget.value })}
            error={inNetworks}
          />
          {TIMES.map((name) => (
            <TextInput
              key={name}
              label={t(`tenant:${name}`)}
              placeholder={t("tenant:asServer")}
              value={times[name]}
              onChange={(event) => change({ times: { ...times, [name]: event.currentTarget.value } })}
              error={faults[name]}
            />
          ))}
          {!areAllShown(saving.error, [...FIELDS, ...Object.keys(faults).filter((field) => field.startsWith("quotas.callbackNetworks"))]) && (
            <ErrorView error={saving.error} />
          )}
          <Group justify="space-between">
            <CopyAs recipe={tenantSetting(tenant.name, wish)} />
            <Group gap="xs">
              <Button variant="default" onClick={onClose}>
                {t("common:dialog.cancel")}
              </Button>
              <Act needs="keys" type="submit" loading={saving.isPending}>
                {t("quotas.save")}
              </Act>
            </Group>
          </Group>
        </Stack>
      )}
    </CheckedForm>
  );
}
