import { Alert } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { getOwnTenant, type TenantDetail } from "@/api";
import { ErrorView, Facts, Icon, Meter, Page, Panel } from "@/parts";

/** The caller's own tenant: its quotas, and how much of them is used. */
export default function TenantPage() {
  const { t } = useTranslation(["tenant", "common"]);
  const tenant = useQuery({ queryKey: ["tenant"], queryFn: ({ signal }) => getOwnTenant({ signal }), refetchInterval: 5_000 });
  return (
    <Page title={t("common:page.tenant")} lead={t("lead")}>
      <ErrorView error={tenant.error} onRetry={() => void tenant.refetch()} />
      {tenant.data && <Quotas tenant={tenant.data} />}
    </Page>
  );
}

function Quotas({ tenant }: { tenant: TenantDetail }) {
  const { t, i18n } = useTranslation("tenant");
  const { quotas, usage } = tenant;
  const number = new Intl.NumberFormat(i18n.language);
  const limit = (value: number | null) => (value === null ? t("noLimit") : number.format(value));
  const networks = quotas.callbackNetworks;
  return (
    <>
      {tenant.status !== "active" && (
        <Alert color="yellow" icon={<Icon name="pause" />}>
          {t(`held.${tenant.status}`)}
        </Alert>
      )}
      <Panel title={tenant.name}>
        <Facts
          items={[
            [t("status.title"), t(`status.${tenant.status}`)],
            [t("weight"), number.format(tenant.weight)],
            [t("jobs"), <Meter key="jobs" used={usage.jobs} of={quotas.jobs} label={t("jobs")} />],
            [t("liveInstances"), <Meter key="live" used={usage.liveInstances} of={quotas.liveInstances} label={t("liveInstances")} />],
            [t("running"), <Meter key="running" used={usage.running} of={quotas.concurrency} label={t("running")} />],
            [t("enqueuePerSecond"), limit(quotas.enqueuePerSecond)],
            [t("payloadBytes"), limit(quotas.payloadBytes)],
            [t("callbackNetworks"), networks === null ? t("publicNetworks") : networks.join(", ") || t("noNetworks")],
            [t("keepHistory"), tenant.keepHistory ?? t("asServer")],
            [t("keepDeadLetters"), tenant.keepDeadLetters ?? t("asServer")],
          ]}
        />
      </Panel>
    </>
  );
}
