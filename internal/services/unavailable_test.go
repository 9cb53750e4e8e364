package services_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/internal/services"
)

// only makes a PATH with the named programs of this machine and no others, over
// an empty cache.
func only(t *testing.T, programs ...string) {
	t.Helper()
	dir := t.TempDir()
	for _, p := range programs {
		path, err := exec.LookPath(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(dir, p)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	t.Setenv("JAVA_HOME", "")
	t.Setenv("DAYBOOK_SERVICES", t.TempDir())
}

func TestNeedSaysWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		service, missing, pkg string
		there                 []string
	}{
		{"elasticsearch", "java", "default-jdk-headless", nil},
		{"elasticsearch", "javac", "default-jdk-headless", []string{"java"}},
		{"kafka", "mvn", "maven", []string{"java", "javac"}},
		{"redis", "apt-get (servers come as Debian packages)", "", nil},
	} {
		t.Run(c.service+" without "+c.missing, func(t *testing.T) {
			only(t, c.there...)
			err := services.Need(t.Context(), c.service)
			var u *services.Unavailable
			if !errors.As(err, &u) {
				t.Fatalf("got %v, want *Unavailable", err)
			}
			if u.Service != c.service || u.Missing != c.missing || u.Package != c.pkg {
				t.Errorf("got %+v, want service %s, missing %s, package %s", u, c.service, c.missing, c.pkg)
			}
			if !strings.Contains(err.Error(), c.missing) || !strings.Contains(err.Error(), c.pkg) {
				t.Errorf("the message %q doesn't say so", err)
			}
		})
	}
}

func TestNeedRefusesUnknownNames(t *testing.T) {
	err := services.Need(t.Context(), "sqlserver")
	if err == nil || !strings.Contains(err.Error(), "sqlserver") || !strings.Contains(err.Error(), "mariadb") {
		t.Errorf("got %v, want an error with the name and the known ones", err)
	}
}
