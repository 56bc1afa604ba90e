{{/*
A node in the pods of another chart, as an init container with restartPolicy Always. examples/webapp/chart uses it:

  initContainers:
    - {{- include "flaked.sidecar" .Subcharts.flaked | nindent 6 }}
  volumes:
    {{- include "flaked.sidecar.volumes" .Subcharts.flaked | nindent 4 }}
*/}}
{{- define "flaked.sidecar" -}}
{{ include "flaked.container" . }}
restartPolicy: Always
args:
  - serve
  - --release-on-exit
  - --listen=unix:/run/flaked/flaked.sock
  # The kubelet's probes come from outside the pod. Without tokens the port answers only the probes and /metrics.
  - --admin=0.0.0.0:7610
  {{- include "flaked.args" . | nindent 2 }}
env:
  {{- include "flaked.cluster.env" . | nindent 2 }}
  # A directory in the volume, which flaked creates. flaked would refuse the volume's own directory: it belongs
  # to root and is open to all.
  - {name: FLAKED_STATE_DIR, value: /var/lib/flaked/node}
  # The page of the cluster links to the node's admin port there.
  - {name: FLAKED_ADVERTISE, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
  # For other commands of flaked that kubectl exec runs.
  - {name: FLAKED_ADDR, value: "unix:/run/flaked/flaked.sock"}
ports:
  - {name: flaked-admin, containerPort: 7610}
# The service starts when the node gives out IDs: after 12 s. The limit is
# 10 minutes, because a restart does not help a node that waits.
startupProbe:
  httpGet: {path: /readyz, port: flaked-admin}
  periodSeconds: 1
  timeoutSeconds: 2
  failureThreshold: 600
livenessProbe:
  httpGet: {path: /livez, port: flaked-admin}
  periodSeconds: 10
  timeoutSeconds: 5
  # A node that hangs cannot stop cleanly, so there is nothing to wait for.
  terminationGracePeriodSeconds: 5
resources:
  {{- toYaml .Values.sidecar.resources | nindent 2 }}
volumeMounts:
  - {name: flaked-state, mountPath: /var/lib/flaked}
  - {name: flaked-socket, mountPath: /run/flaked}
  {{- include "flaked.cluster.mounts" . | nindent 2 }}
{{- end }}

{{- define "flaked.sidecar.volumes" -}}
# The volume outlives the container, so that a killed node keeps its worker.
- {name: flaked-state, emptyDir: {sizeLimit: 16Mi}}
- {name: flaked-socket, emptyDir: {sizeLimit: 1Mi}}
{{ include "flaked.cluster.volumes" . }}
{{- end }}
