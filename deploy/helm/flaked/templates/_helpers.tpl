{{/* The name of all objects. The alerts need "flaked" in it, because the job of the metrics is named after it. */}}
{{- define "flaked.name" -}}
{{- $name := trunc 40 .Release.Name | trimSuffix "-" -}}
{{- contains "flaked" $name | ternary $name (printf "%s-flaked" $name) -}}
{{- end }}

{{- define "flaked.selector" -}}
app.kubernetes.io/name: flaked
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "flaked.labels" -}}
{{ include "flaked.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "flaked.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* What all containers of flaked have. */}}
{{- define "flaked.container" -}}
name: flaked
image: {{ include "flaked.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
# kubectl describe pod shows why it ended.
terminationMessagePolicy: FallbackToLogsOnError
{{- with .Values.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* ZooKeeper and the cluster, in the environment, so that commands run by kubectl exec find them too. */}}
{{- define "flaked.cluster.env" -}}
- {name: FLAKED_ZK, value: {{ .Values.zookeeper.servers | quote }}}
- {name: FLAKED_CLUSTER, value: {{ .Values.cluster.name | quote }}}
{{- range $flag, $value := .Values.cluster.settings }}
- {name: FLAKED_{{ $flag | upper | replace "-" "_" }}, value: {{ $value | toString | quote }}}
{{- end }}
{{- with .Values.zookeeper.authSecret }}
- {name: FLAKED_ZK_AUTH, valueFrom: {secretKeyRef: {name: {{ quote . }}, key: auth}}}
{{- end }}
{{- with .Values.zookeeper.tls }}
{{- if .secret }}
- {name: FLAKED_ZK_TLS_CA, value: /etc/flaked/zookeeper/ca.crt}
{{- if .clientCertificate }}
- {name: FLAKED_ZK_TLS_CERT, value: /etc/flaked/zookeeper/tls.crt}
- {name: FLAKED_ZK_TLS_KEY, value: /etc/flaked/zookeeper/tls.key}
{{- end }}
{{- with .serverName }}
- {name: FLAKED_ZK_TLS_SERVER_NAME, value: {{ . | quote }}}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "flaked.cluster.mounts" -}}
{{- if .Values.zookeeper.tls.secret -}}
- {name: flaked-zookeeper, mountPath: /etc/flaked/zookeeper, readOnly: true}
{{- end }}
{{- end }}

{{/* Only containers of flaked mount the Secret. Its mode lets them read it in pods without flaked's fsGroup. */}}
{{- define "flaked.cluster.volumes" -}}
{{- with .Values.zookeeper.tls.secret -}}
- {name: flaked-zookeeper, secret: {secretName: {{ quote . }}, defaultMode: 0444}}
{{- end }}
{{- end }}

{{- define "flaked.args" -}}
{{- range $flag, $value := .Values.flags }}
- {{ printf "--%s=%v" $flag $value | quote }}
{{- end }}
{{- end }}

{{/* The bytes of a quantity of memory, such as 64Mi. */}}
{{- define "flaked.bytes" -}}
{{- $q := kindIs "string" . | ternary . (printf "%.0f" (float64 .)) -}}
{{- $unit := regexFind "[A-Za-z]*$" $q -}}
{{- $factor := get (dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824) $unit | default 1073741824 -}}
{{- mulf (trimSuffix $unit $q | float64) $factor | int64 -}}
{{- end }}

{{/* The nodes of a Deployment that a rollout adds at once: a quarter of them, as in templates/nodes.yaml. */}}
{{- define "flaked.surge" -}}
{{- eq .Values.kind "Deployment" | ternary (div (add .Values.replicas 3) 4) 0 -}}
{{- end }}
