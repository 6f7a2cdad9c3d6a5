// The lab's volume provisioner: a claim becomes a directory on the node, which
// any user in a pod may write to, and goes when the claim is deleted.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v11/controller"
)

const provisionerName = "llm-platform.local/volumes"

func newVolumesCommand() *cobra.Command {
	var kubeconfig, root string
	command := &cobra.Command{
		Use:          "volumes",
		Short:        "Make a directory below --root for every claim of the lab's storage class",
		SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error {
			return serveVolumes(kubeconfig, root)
		},
	}
	command.Flags().StringVar(&kubeconfig, "kubeconfig", "", "how to reach the API server")
	command.Flags().StringVar(&root, "root", "", "the directory that holds the volumes")
	_ = command.MarkFlagRequired("kubeconfig")
	_ = command.MarkFlagRequired("root")
	return command
}

func serveVolumes(kubeconfig, root string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	controller.NewProvisionController(
		ctx, client, provisionerName, directories{root},
		controller.LeaderElection(false),
	).Run(ctx)
	return nil
}

// directories makes and removes what is behind a volume.
type directories struct{ root string }

func (d directories) Provision(
	_ context.Context, options controller.ProvisionOptions,
) (*v1.PersistentVolume, controller.ProvisioningState, error) {
	path := filepath.Join(d.root, options.PVName)
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	// Pods run as users of their own, and the umask took bits away.
	if err := os.Chmod(path, 0o777); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	volume := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: options.PVName},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *options.StorageClass.ReclaimPolicy,
			AccessModes:                   options.PVC.Spec.AccessModes,
			Capacity: v1.ResourceList{
				v1.ResourceStorage: options.PVC.Spec.Resources.Requests[v1.ResourceStorage],
			},
			PersistentVolumeSource: v1.PersistentVolumeSource{
				HostPath: &v1.HostPathVolumeSource{Path: path},
			},
		},
	}
	return volume, controller.ProvisioningFinished, nil
}

func (d directories) Delete(_ context.Context, volume *v1.PersistentVolume) error {
	if volume.Spec.HostPath == nil || filepath.Dir(volume.Spec.HostPath.Path) != filepath.Clean(d.root) {
		return fmt.Errorf("volume %s has no directory below %s", volume.Name, d.root)
	}
	return os.RemoveAll(volume.Spec.HostPath.Path)
}
