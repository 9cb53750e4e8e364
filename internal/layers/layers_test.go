// Package layers holds documents against the code: the import table of docs/architecture.md, the tests that docs/guarantees.md names.
package layers

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/daybook-data/daybook/"

// forTests are packages that any test may import beside its own layer's.
var forTests = []string{"internal/services", "internal/vfs", "internal/cable", "storage/storagetest", "sources/sourcetest", "sinks/sinktest", "cluster/clustertest"}

// free are the packages whose tests see everything from above.
var free = []string{"internal/node", "internal/layers", "examples"}

func TestImportsPointDown(t *testing.T) {
	t.Parallel()
	table := readTable(t)
	for _, p := range listPackages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		allowed, known := table[name]
		if len(p.GoFiles) > 0 && !known {
			t.Errorf("package %s is not in the table of docs/architecture.md", name)
			continue
		}
		for _, imported := range ours(p.Imports) {
			if !slices.Contains(allowed, imported) {
				t.Errorf("%s imports %s: the table of docs/architecture.md does not allow it", name, imported)
			}
		}
		if slices.Contains(free, name) {
			continue
		}
		for _, imported := range ours(append(p.TestImports, p.XTestImports...)) {
			if imported != name && !slices.Contains(allowed, imported) && !slices.Contains(forTests, imported) {
				t.Errorf("a test of %s imports %s: the table of docs/architecture.md does not allow it", name, imported)
			}
		}
	}
}

func TestTableNamesOnlyPackagesThatExist(t *testing.T) {
	t.Parallel()
	exists := map[string]bool{}
	for _, p := range listPackages(t) {
		exists[strings.TrimPrefix(p.ImportPath, module)] = true
	}
	for name, allowed := range readTable(t) {
		for _, n := range append(allowed, name) {
			if !exists[n] {
				t.Errorf("the table of docs/architecture.md names %s, which is not there", n)
			}
		}
	}
}

type listed struct {
	ImportPath                                  string
	GoFiles, Imports, TestImports, XTestImports []string
}

func listPackages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,GoFiles,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = "../.."
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("listing the packages: %v", err)
	}
	var all []listed
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		if err := dec.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatalf("reading go list's answer: %v", err)
		}
		all = append(all, p)
	}
}

func ours(imports []string) []string {
	var out []string
	for _, i := range imports {
		if name, ok := strings.CutPrefix(i, module); ok {
			out = append(out, name)
		}
	}
	return out
}

var tableRow = regexp.MustCompile("^\\| `([^`]+)` \\|(.*)\\|$")
var quoted = regexp.MustCompile("`([^`]+)`")

func readTable(t *testing.T) map[string][]string {
	t.Helper()
	doc, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatalf("reading the table: %v", err)
	}
	table := map[string][]string{}
	for line := range strings.Lines(string(doc)) {
		m := tableRow.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		allowed := []string{}
		for _, q := range quoted.FindAllStringSubmatch(m[2], -1) {
			allowed = append(allowed, q[1])
		}
		table[m[1]] = allowed
	}
	if len(table) == 0 {
		t.Fatal("docs/architecture.md holds no table of the form | `package` | `import`, ... |")
	}
	return table
}
