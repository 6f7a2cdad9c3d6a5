// The Kubernetes provider's entry point. The module leaves out the two files
// that its own main embeds; the build copies them here from the module first.
package main

import (
	_ "embed"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
)

// Set by the build with -ldflags.
var version = "v0.0.0"

//go:embed schema.json
var schema []byte

//go:embed terraform-mapping.json
var terraformMapping []byte

func main() {
	provider.Serve("kubernetes", version, schema, terraformMapping)
}
