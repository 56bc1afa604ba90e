// Package kubernetes checks the Helm chart deploy/helm/flaked with Helm's and Kubernetes' own code: helm lint and helm
// template, strict decoding, the API server's validation and warnings, and the restricted level of Pod Security. It is
// a module of its own, so that flaked does not depend on Kubernetes. `make kubernetes` runs it.
package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	batchvalidation "k8s.io/kubernetes/pkg/apis/batch/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/networking"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	networkingvalidation "k8s.io/kubernetes/pkg/apis/networking/validation"
	"k8s.io/kubernetes/pkg/apis/policy"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	policyvalidation "k8s.io/kubernetes/pkg/apis/policy/validation"
	security "k8s.io/pod-security-admission/api"
	securitypolicy "k8s.io/pod-security-admission/policy"
)

func validate(obj runtime.Object) error {
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	if m.GetNamespace() != "" {
		return errors.New("it names a namespace: that is whoever applies it to say")
	}
	m.SetNamespace("default")
	var pods *core.PodTemplateSpec
	var found field.ErrorList
	switch obj := obj.(type) {
	case *core.Service:
		if obj.Spec.ClusterIP != "" {
			obj.Spec.ClusterIPs = []string{obj.Spec.ClusterIP} // the API server does so first
		}
		found = corevalidation.ValidateServiceCreate(obj)
	case *apps.Deployment:
		pods = &obj.Spec.Template
		found = appsvalidation.ValidateDeployment(obj, podutil.GetValidationOptionsFromPodTemplate(pods, nil))
	case *apps.StatefulSet:
		pods = &obj.Spec.Template
		found = appsvalidation.ValidateStatefulSet(obj, podutil.GetValidationOptionsFromPodTemplate(pods, nil))
	case *batch.Job:
		// The API server sets a Job's selector when it accepts the Job.
		unique := map[string]string{batch.ControllerUidLabel: "1", batch.LegacyControllerUidLabel: "1",
			batch.JobNameLabel: obj.Name, batch.LegacyJobNameLabel: obj.Name}
		obj.UID = "1"
		obj.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{batch.ControllerUidLabel: "1"}}
		pods = &obj.Spec.Template
		maps.Copy(pods.Labels, unique)
		found = batchvalidation.ValidateJob(obj, batchvalidation.JobValidationOptions{
			PodValidationOptions: podutil.GetValidationOptionsFromPodTemplate(pods, nil), RequirePrefixedLabels: true,
		})
	case *policy.PodDisruptionBudget:
		found = policyvalidation.ValidatePodDisruptionBudget(obj,
			policyvalidation.PodDisruptionBudgetValidationOptions{})
	case *networking.NetworkPolicy:
		found = networkingvalidation.ValidateNetworkPolicy(obj, networkingvalidation.NetworkPolicyValidationOptions{})
	default:
		return fmt.Errorf("%T is not among what is looked at here", obj)
	}
	errs := []error{found.ToAggregate()}
	if pods != nil {
		errs = append(errs, checkPods(pods))
	}
	return errors.Join(errs...)
}

func checkPods(pods *core.PodTemplateSpec) error {
	var errs []error
	for _, w := range podutil.GetWarningsForPodTemplate(context.Background(), field.NewPath("template"), pods, nil) {
		errs = append(errs, fmt.Errorf("warning: %s", w))
	}
	var public corev1.PodTemplateSpec
	if err := legacyscheme.Scheme.Convert(pods, &public, nil); err != nil {
		return err
	}
	eval, err := securitypolicy.NewEvaluator(securitypolicy.DefaultChecks(), nil)
	if err != nil {
		return err
	}
	level := security.LevelVersion{Level: security.LevelRestricted, Version: security.LatestVersion()}
	if r := securitypolicy.AggregateCheckResults(eval.EvaluatePod(level, &public.ObjectMeta,
		&public.Spec)); !r.Allowed {
		errs = append(errs, fmt.Errorf("the restricted level of Pod Security forbids it: %s", r.ForbiddenDetail()))
	}
	return errors.Join(errs...)
}
