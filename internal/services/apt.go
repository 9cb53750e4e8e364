package services

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// apt is a private apt of one Debian release: the machine's own programs, keys,
// mirror and proxy settings over state of our own, in which no package counts
// as installed. So it resolves packages down to the C library, needs no root
// and changes nothing of the system.
type apt struct {
	dir   string // absolute; the state lies in it
	suite string // such as "bookworm" or "sid"
}

// aptListAge is how long a package list is used before it is read again.
const aptListAge = 6 * time.Hour

// openApt readies the state directory. The caller holds the suite's lock.
func openApt(ctx context.Context, dir, suite string) (*apt, error) {
	for _, tool := range []string{"apt-get", "apt-config", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, &Unavailable{Missing: tool + " (servers come as Debian packages)", Err: err}
		}
	}
	mirror, err := debianMirror("/etc/apt")
	if err != nil {
		return nil, err
	}
	a := &apt{dir: dir, suite: suite}
	for _, d := range []string{"empty", "state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	acquire, err := exec.CommandContext(ctx, "apt-config", "dump", "--format", `%F "%v";%n`, "Acquire").Output()
	if err != nil {
		return nil, fmt.Errorf("reading apt's settings: %w", err)
	}
	source := fmt.Sprintf("deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n", mirror, suite)
	files := map[string]string{
		"apt.conf":     aptConfig(dir, string(acquire)),
		"sources.list": source,
		"state/status": "",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// aptConfig keeps what the machine's settings say about fetching (proxies,
// certificates, validity) and drops everything else of them, such as hooks that
// run after an update.
func aptConfig(dir, acquire string) string {
	var b strings.Builder
	for line := range strings.Lines(acquire) {
		if strings.HasPrefix(line, "Acquire::IndexTargets") || strings.HasPrefix(line, "Acquire::Languages") {
			continue
		}
		b.WriteString(line)
	}
	fmt.Fprintf(&b, `
Acquire::Languages "none";
Acquire::Retries "3";
APT::Sandbox::User "";
APT::Update::Error-Mode "any";
APT::Install-Recommends "false";
Dir::Etc::main "/dev/null";
Dir::Etc::parts "%[1]s/empty";
Dir::Etc::sourcelist "%[1]s/sources.list";
Dir::Etc::sourceparts "%[1]s/empty";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "%[1]s/empty";
Dir::State "%[1]s/state";
Dir::State::status "%[1]s/state/status";
Dir::Cache "%[1]s/cache";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
`, dir)
	return b.String()
}

// download fetches the packages with everything they depend on, and the alone
// ones without, and returns the files. They are valid until the next download.
func (a *apt) download(ctx context.Context, packages, alone []string) ([]string, error) {
	var last error
	for try := range 3 {
		files, err := a.tryDownload(ctx, packages, alone, try > 0)
		if err == nil {
			return files, nil
		}
		if ctx.Err() != nil {
			return nil, errors.Join(err, context.Cause(ctx))
		}
		last = err // a moving release: what the list names may be gone; read it again
	}
	return nil, last
}

func (a *apt) tryDownload(ctx context.Context, packages, alone []string, refresh bool) ([]string, error) {
	stamp := filepath.Join(a.dir, "updated")
	info, err := os.Stat(stamp)
	if refresh || err != nil || time.Since(info.ModTime()) > aptListAge {
		if err := a.run(ctx, a.dir, "update", "-qq"); err != nil {
			return nil, fmt.Errorf("reading the package list of %s: %w", a.suite, err)
		}
		if err := os.WriteFile(stamp, nil, 0o644); err != nil {
			return nil, err
		}
	}
	archives := filepath.Join(a.dir, "cache", "archives")
	if err := removeDebs(archives); err != nil {
		return nil, err
	}
	args := append([]string{"install", "-y", "-qq", "--download-only"}, packages...)
	if err := a.run(ctx, a.dir, args...); err != nil {
		return nil, fmt.Errorf("downloading %s: %w", strings.Join(packages, " "), err)
	}
	if len(alone) > 0 {
		if err := a.run(ctx, archives, append([]string{"download", "-qq"}, alone...)...); err != nil {
			return nil, fmt.Errorf("downloading %s: %w", strings.Join(alone, " "), err)
		}
	}
	return filepath.Glob(filepath.Join(archives, "*.deb"))
}

// run calls apt-get in the directory; an error holds the end of what it printed.
func (a *apt) run(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "APT_CONFIG="+filepath.Join(a.dir, "apt.conf"), "LC_ALL=C")
	return runQuiet(cmd)
}

func removeDebs(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			return err
		}
	}
	return nil
}

var (
	deb822URIs  = regexp.MustCompile(`(?m)^URIs:\s*(.*)$`)
	oneLineURI  = regexp.MustCompile(`(?m)^deb\s+(?:\[[^\]]*\]\s*)?(\S+)`)
	mainArchive = regexp.MustCompile(`/debian/?$`)
)

// debianMirror returns the address from which this machine's apt takes the main
// Debian archive.
func debianMirror(etc string) (string, error) {
	var uris []string
	for _, pattern := range []string{"sources.list.d/*.sources", "sources.list", "sources.list.d/*.list"} {
		files, err := filepath.Glob(filepath.Join(etc, pattern))
		if err != nil {
			return "", err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			for _, m := range deb822URIs.FindAllSubmatch(text, -1) {
				uris = append(uris, strings.Fields(string(m[1]))...)
			}
			for _, m := range oneLineURI.FindAllSubmatch(text, -1) {
				uris = append(uris, string(m[1]))
			}
		}
	}
	for _, uri := range uris {
		if mainArchive.MatchString(uri) {
			return strings.TrimSuffix(uri, "/"), nil
		}
	}
	return "", &Unavailable{Missing: "a mirror of the Debian archive in " + etc}
}
