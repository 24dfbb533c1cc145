{{/* The name of the chart. */}}
{{- define "horai.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* The beginning of every name: that of the release, with that of the chart unless it is in it. */}}
{{- define "horai.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "horai.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "horai.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels that select the pods of the release. */}}
{{- define "horai.selector" -}}
app.kubernetes.io/name: {{ include "horai.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Labels of every object. */}}
{{- define "horai.labels" -}}
{{ include "horai.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "horai.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "horai.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "horai.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "horai.scheme" -}}
{{- if .Values.access.tls.existingSecret -}}https{{- else -}}http{{- end -}}
{{- end -}}

{{- define "horai.publicUrl" -}}
{{- $address := printf "%s://%s-api.%s.svc:%d" (include "horai.scheme" .) (include "horai.fullname" .) .Release.Namespace (int .Values.api.service.port) -}}
{{- default $address .Values.access.publicUrl -}}
{{- end -}}

{{/* The security context of every pod. */}}
{{- define "horai.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* The security context of every container. */}}
{{- define "horai.containerSecurity" -}}
allowPrivilegeEscalation: false
privileged: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* Variables of every process that works on the database. */}}
{{- define "horai.environment" -}}
- name: HORAI_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: HORAI_DATABASE_URL_FILE
  value: /etc/horai/secrets/database-url
{{- if .Values.encryption.existingSecret }}
- name: HORAI_ENCRYPTION_KEY_FILE
  value: /etc/horai/secrets/encryption-key
{{- end }}
- name: HORAI_STATE_DIR
  value: /var/lib/horai/state
- name: HORAI_LEASE_TTL
  value: {{ .Values.leaseTtl | quote }}
- name: HORAI_GRACE
  value: {{ printf "%ds" (int .Values.graceSeconds) | quote }}
- name: HORAI_LOG_LEVEL
  value: {{ .Values.logLevel | quote }}
- name: HORAI_LOG_FORMAT
  value: json
{{- end -}}

{{/* Variables of every node, with or without the role api for clients. */}}
{{- define "horai.nodeEnvironment" -}}
{{ include "horai.environment" . }}
- name: HORAI_HOST
  value: "0.0.0.0"
- name: HORAI_PORT
  value: "8470"
- name: HORAI_PUBLIC_URL
  value: {{ include "horai.publicUrl" . | quote }}
- name: HORAI_REQUIRE_KEY
  value: {{ .Values.access.requireKey | quote }}
{{- if .Values.access.tls.existingSecret }}
- name: HORAI_TLS_CERT
  value: /etc/horai/tls/tls.crt
- name: HORAI_TLS_KEY
  value: /etc/horai/tls/tls.key
{{- else if .Values.access.trustedProxies }}
- name: HORAI_TRUSTED_PROXY
  value: {{ join "," .Values.access.trustedProxies | quote }}
{{- else if .Values.access.insecure }}
- name: HORAI_INSECURE
  value: "true"
{{- else }}
{{- fail "Give access.tls.existingSecret or access.trustedProxies, or set access.insecure=true to serve without TLS." }}
{{- end }}
{{- if .Values.audit.existingSecret }}
- name: HORAI_AUDIT_KEY_FILE
  value: /etc/horai/secrets/audit-key
{{- end }}
{{- with .Values.callbackAllow }}
- name: HORAI_CALLBACK_ALLOW
  value: {{ join "," . | quote }}
{{- end }}
{{- end -}}

{{- define "horai.mounts" -}}
- name: secrets
  mountPath: /etc/horai/secrets
  readOnly: true
- name: state
  mountPath: /var/lib/horai/state
- name: tmp
  mountPath: /tmp
{{- end -}}

{{- define "horai.nodeMounts" -}}
{{ include "horai.mounts" . }}
{{- if .Values.access.tls.existingSecret }}
- name: tls
  mountPath: /etc/horai/tls
  readOnly: true
{{- end }}
{{- end -}}

{{/* The secrets of a process, and its directory for temporary files. The volume `state` is not in it. */}}
{{- define "horai.volumes" -}}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      - secret:
          name: {{ .Values.database.existingSecret }}
          items:
            - key: {{ .Values.database.urlKey }}
              path: database-url
      {{- if .Values.encryption.existingSecret }}
      - secret:
          name: {{ .Values.encryption.existingSecret }}
          items:
            - key: {{ .Values.encryption.key }}
              path: encryption-key
      {{- end }}
      {{- if .Values.audit.existingSecret }}
      - secret:
          name: {{ .Values.audit.existingSecret }}
          items:
            - key: {{ .Values.audit.key }}
              path: audit-key
      {{- end }}
- name: tmp
  emptyDir:
    medium: Memory
    sizeLimit: 64Mi
{{- end -}}

{{- define "horai.nodeVolumes" -}}
{{ include "horai.volumes" . }}
{{- if .Values.access.tls.existingSecret }}
- name: tls
  secret:
    secretName: {{ .Values.access.tls.existingSecret }}
    defaultMode: 0440
{{- end }}
{{- end -}}

{{/* Probes of a process with a port. */}}
{{- define "horai.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: http, scheme: {{ include "horai.scheme" . | upper }}}
  periodSeconds: 5
  timeoutSeconds: 4
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: http, scheme: {{ include "horai.scheme" . | upper }}}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: http, scheme: {{ include "horai.scheme" . | upper }}}
  periodSeconds: 5
  timeoutSeconds: 6
  failureThreshold: 2
{{- end -}}

{{/* Where the pods of a component may run. Takes the root and the name of the component. */}}
{{- define "horai.placement" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $values := index $root.Values $component -}}
topologySpreadConstraints:
  {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "horai.selector" $root | nindent 8 }}
        app.kubernetes.io/component: {{ $component }}
  {{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The parts of a pod that all components share. */}}
{{- define "horai.pod" -}}
serviceAccountName: {{ include "horai.serviceAccount" . }}
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: {{ add (int .Values.graceSeconds) 20 }}
securityContext:
  {{- include "horai.podSecurity" . | nindent 2 }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
