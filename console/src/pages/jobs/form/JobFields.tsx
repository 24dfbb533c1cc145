import { Button, Collapse, Stack, TextInput } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Icon, JsonEditor, Panel } from "@/parts";
import { EXAMPLE } from "./examples";
import { errorOf, type FieldsProps } from "./field";
import classes from "./form.module.css";
import { MORE, MoreFields } from "./MoreFields";
import { Preview } from "./Preview";
import { TargetFields } from "./TargetFields";
import { usePreview } from "./usePreview";
import { WhenFields } from "./WhenFields";

interface JobFieldsProps extends FieldsProps {
  /** False while the payload is no JSON. */
  onPayloadValid: (isValid: boolean) => void;
}

/** All fields of a job, the few that everybody needs first, beside the fires they lead to. */
export function JobFields({ onPayloadValid, ...given }: JobFieldsProps) {
  const { draft, onChange, isThere } = given;
  const { t } = useTranslation("jobs");
  const preview = usePreview(draft);
  const errors = { ...preview.errors, ...given.errors };
  const fields = { ...given, errors };
  return (
    <div className={classes.columns}>
      <Stack gap="lg">
        <Panel>
          <TextInput
            label={t("form.name")}
            description={t("form.nameHint")}
            placeholder={EXAMPLE.name}
            value={draft.name}
            onChange={(event) => onChange({ name: event.currentTarget.value })}
            error={errors["name"]}
            disabled={isThere ?? false}
            data-autofocus={!isThere}
            maxLength={200}
          />
          <TextInput
            mt="md"
            label={t("form.title")}
            description={t("form.titleHint")}
            value={draft.title}
            onChange={(event) => onChange({ title: event.currentTarget.value })}
            error={errors["title"]}
            maxLength={200}
          />
        </Panel>
        <Panel title={t("form.when")}>
          <WhenFields {...fields} />
        </Panel>
        <Panel title={t("form.target")}>
          <TargetFields {...fields} />
        </Panel>
        <Panel title={t("form.payload")}>
          <JsonEditor
            aria-label={t("form.payload")}
            description={t("form.payloadHint")}
            placeholder={EXAMPLE.payload}
            value={draft.payload}
            error={errors["payload"]}
            onChange={(payload, isValid) => {
              onChange({ payload });
              onPayloadValid(isValid);
            }}
          />
        </Panel>
        <More {...fields} />
      </Stack>
      <div className={classes.aside}>
        <Preview
          draft={draft}
          fires={preview.fires}
          isAsked={preview.isAsked}
          isWrong={Object.keys(preview.errors).length > 0}
        />
      </div>
    </div>
  );
}

function More(props: FieldsProps) {
  const { t } = useTranslation("jobs");
  const [isWanted, want] = useState(false);
  const isOpen = isWanted || errorOf(props.errors, ...MORE) !== undefined;
  return (
    <Panel>
      <Button
        variant="subtle"
        color="gray"
        px="xs"
        ml={-8}
        h="auto"
        mih={36}
        maw="100%"
        styles={{ label: { whiteSpace: "normal", textAlign: "left" } }}
        aria-expanded={isOpen}
        leftSection={<Icon name={isOpen ? "down" : "right"} size={16} />}
        onClick={() => want(!isOpen)}
      >
        {t("form.more")}
      </Button>
      <Collapse expanded={isOpen} keepMounted={false}>
        <div style={{ paddingTop: 16 }}>
          <MoreFields {...props} />
        </div>
      </Collapse>
    </Panel>
  );
}
