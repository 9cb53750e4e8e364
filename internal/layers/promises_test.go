package layers

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	namedTest    = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9_]*)`")
	declaredTest = regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9_]*)\(`)
)

// A promise whose test was renamed or removed is a promise that nobody keeps.
func TestPromisesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "../../...").Output()
	if err != nil {
		t.Fatalf("listing packages: %v", err)
	}
	declared := map[string]bool{}
	for dir := range strings.Lines(string(out)) {
		files, err := filepath.Glob(filepath.Join(strings.TrimSpace(dir), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			for _, m := range declaredTest.FindAllStringSubmatch(read(t, f), -1) {
				declared[m[1]] = true
			}
		}
	}
	promises := "../../docs/guarantees.md"
	named := namedTest.FindAllStringSubmatch(read(t, promises), -1)
	if len(named) < 50 {
		t.Errorf("%s names %d tests, want one for each promise", promises, len(named))
	}
	for _, m := range named {
		if !declared[m[1]] {
			t.Errorf("%s names %s, which is not there", promises, m[1])
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
