package kubecheck

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"go.yaml.in/yaml/v3"
)

// object holds the fields of a Kubernetes object that the checks read. Other fields are
// ignored: the module apiserver reports the fields that Kubernetes does not know.
type object struct {
	Kind     string            `yaml:"kind"`
	Metadata metadata          `yaml:"metadata"`
	Data     map[string]string `yaml:"data"`
	Spec     spec              `yaml:"spec"`
}

type metadata struct {
	Name   string            `yaml:"name"`
	Labels map[string]string `yaml:"labels"`
}

// spec holds the fields of the specs of all kinds.
type spec struct {
	Template             *template  `yaml:"template"`
	VolumeClaimTemplates []template `yaml:"volumeClaimTemplates"`
	ServiceName          string     `yaml:"serviceName"`

	Selector    selector `yaml:"selector"`
	PodSelector selector `yaml:"podSelector"`
	Ports       []port   `yaml:"ports"`
	ClusterIP   string   `yaml:"clusterIP"`
	Ingress     []struct {
		Ports []port `yaml:"ports"`
	} `yaml:"ingress"`
}

// selector has labels. A Service has them without matchLabels.
type selector struct {
	MatchLabels map[string]string `yaml:"matchLabels"`
	Labels      map[string]string `yaml:",inline"`
}

type template struct {
	Metadata metadata `yaml:"metadata"`
	Spec     pod      `yaml:"spec"`
}

type pod struct {
	EnableServiceLinks            *bool       `yaml:"enableServiceLinks"`
	TerminationGracePeriodSeconds int         `yaml:"terminationGracePeriodSeconds"`
	SecurityContext               security    `yaml:"securityContext"`
	InitContainers                []container `yaml:"initContainers"`
	Containers                    []container `yaml:"containers"`
	Volumes                       []volume    `yaml:"volumes"`
	TopologySpreadConstraints     []struct {
		LabelSelector selector `yaml:"labelSelector"`
	} `yaml:"topologySpreadConstraints"`
}

type security struct {
	RunAsUser              *int   `yaml:"runAsUser"`
	RunAsGroup             *int   `yaml:"runAsGroup"`
	FSGroup                *int   `yaml:"fsGroup"`
	FSGroupChangePolicy    string `yaml:"fsGroupChangePolicy"`
	SupplementalGroups     []int  `yaml:"supplementalGroups"`
	ReadOnlyRootFilesystem bool   `yaml:"readOnlyRootFilesystem"`
}

type container struct {
	Name            string   `yaml:"name"`
	Image           string   `yaml:"image"`
	RestartPolicy   string   `yaml:"restartPolicy"`
	Args            []string `yaml:"args"`
	SecurityContext security `yaml:"securityContext"`
	EnvFrom         []struct {
		ConfigMapRef metadata `yaml:"configMapRef"`
	} `yaml:"envFrom"`
	Env []struct {
		Name      string `yaml:"name"`
		Value     string `yaml:"value"`
		ValueFrom struct {
			FieldRef struct {
				FieldPath string `yaml:"fieldPath"`
			} `yaml:"fieldRef"`
		} `yaml:"valueFrom"`
	} `yaml:"env"`
	Ports []struct {
		Name          string `yaml:"name"`
		ContainerPort int    `yaml:"containerPort"`
	} `yaml:"ports"`
	StartupProbe   *probe  `yaml:"startupProbe"`
	ReadinessProbe *probe  `yaml:"readinessProbe"`
	LivenessProbe  *probe  `yaml:"livenessProbe"`
	VolumeMounts   []mount `yaml:"volumeMounts"`
	Lifecycle      struct {
		PreStop struct {
			Sleep struct {
				Seconds int `yaml:"seconds"`
			} `yaml:"sleep"`
		} `yaml:"preStop"`
	} `yaml:"lifecycle"`
}

type probe struct {
	HTTPGet   httpGet `yaml:"httpGet"`
	TCPSocket struct {
		Port string `yaml:"port"`
	} `yaml:"tcpSocket"`
	PeriodSeconds    int `yaml:"periodSeconds"`
	FailureThreshold int `yaml:"failureThreshold"`
}

type httpGet struct {
	Path string `yaml:"path"`
	Port string `yaml:"port"`
}

type mount struct {
	Name      string `yaml:"name"`
	MountPath string `yaml:"mountPath"`
	ReadOnly  bool   `yaml:"readOnly"`
}

type volume struct {
	Name     string     `yaml:"name"`
	EmptyDir *yaml.Node `yaml:"emptyDir"`
	Secret   *struct {
		SecretName  string `yaml:"secretName"`
		DefaultMode uint32 `yaml:"defaultMode"`
	} `yaml:"secret"`
}

type port struct {
	Port       string `yaml:"port"`
	TargetPort string `yaml:"targetPort"`
}

// kustomization holds the fields of kustomize that deploy/kubernetes may use. load
// refuses other fields, because the checks would not see their effect.
type kustomization struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Resources  []string `yaml:"resources"`
}

// load returns the objects of the kustomization in dir, including those of the
// directories that it names.
func load(fsys fs.FS, dir string) ([]object, error) {
	data, err := fs.ReadFile(fsys, path.Join(dir, "kustomization.yaml"))
	if err != nil {
		return nil, err
	}
	var k kustomization
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&k); err != nil {
		return nil, fmt.Errorf("%s/kustomization.yaml: %w", dir, err)
	}
	var all []object
	for _, name := range k.Resources {
		at := path.Join(dir, name)
		fi, err := fs.Stat(fsys, at)
		if err != nil {
			return nil, err
		}
		if fi.IsDir() {
			more, err := load(fsys, at)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
			continue
		}
		data, err := fs.ReadFile(fsys, at)
		if err != nil {
			return nil, err
		}
		for dec := yaml.NewDecoder(bytes.NewReader(data)); ; {
			var o object
			if err := dec.Decode(&o); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("%s: %w", at, err)
			}
			all = append(all, o)
		}
	}
	return all, nil
}
