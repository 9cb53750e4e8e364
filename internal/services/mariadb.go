package services

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// StartMariaDB installs MariaDB 10.11 if needed and starts a server, whose GTIDs
// are of domain 1.
//
// Variants: minimal, noblob (row images), compress, fullmeta, nochecksum,
// noannotate, domain2, statement.
func StartMariaDB(ctx context.Context, o Options) (*MySQL, error) {
	return startDatabase(ctx, mariaFlavor(), o)
}

func mariaFlavor() flavor {
	return flavor{
		name:     "mariadb",
		debian:   mariaDebian(),
		program:  "usr/sbin/mariadbd",
		settings: mariaSettings,
		serve:    []string{"--binlog-format=ROW", "--gtid-domain-id=1", "--gtid-strict-mode=ON", "--innodb-log-file-size=64M"},
		variants: map[string][]string{
			"minimal":    {"--binlog-row-image=MINIMAL"},
			"noblob":     {"--binlog-row-image=NOBLOB"},
			"compress":   {"--log-bin-compress=ON", "--log-bin-compress-min-len=10"},
			"fullmeta":   {"--binlog-row-metadata=FULL"},
			"nochecksum": {"--binlog-checksum=NONE"},
			"noannotate": {"--binlog-annotate-row-events=OFF"},
			"domain2":    {"--gtid-domain-id=2"},
			"statement":  {"--binlog-format=STATEMENT"},
		},
	}
}

func mariaDebian() debian {
	return debian{
		name:         "mariadb",
		suite:        "bookworm",
		packages:     []string{"mariadb-server-core", "mariadb-client-core"},
		alone:        []string{"mariadb-server", "mariadb-client"}, // plugins; dump and binlog programs
		finish:       initMaria,
		finishInputs: "1" + mariaAccounts,
	}
}

func mariaSettings(u unpacked) []string {
	share := mariaShare(u)
	s := []string{
		"--no-defaults", "--basedir=" + u.path("usr"),
		"--lc-messages-dir=" + share,
		"--character-sets-dir=" + filepath.Join(share, "charsets"),
		"--plugin-dir=" + u.first("usr/lib/mysql/plugin", "usr/lib/mariadb/plugin"),
		"--secure-file-priv=", "--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci",
		"--plugin-maturity=unknown",
	}
	return append(s, asRoot()...)
}

// mariaShare returns the directory of messages and bootstrap scripts.
func mariaShare(u unpacked) string {
	return filepath.Dir(u.first("usr/share/mysql/charsets", "usr/share/mariadb/charsets"))
}

// initMaria makes the template of a data directory, with the accounts, as
// mariadb-install-db would: by feeding scripts to a server that does only that.
func initMaria(ctx context.Context, u unpacked) error {
	template := filepath.Join(u.dir, "template")
	for _, d := range []string{"mysql", "test"} {
		if err := os.MkdirAll(filepath.Join(template, d), 0o700); err != nil {
			return err
		}
	}
	script, err := mariaBootstrap(u)
	if err != nil {
		return err
	}
	args := append(mariaSettings(u), "--datadir="+template, "--bootstrap", "--enforce-storage-engine=",
		"--innodb-log-file-size=64M", "--max-allowed-packet=8M", "--net-buffer-length=16K")
	cmd, err := u.command(ctx, "usr/sbin/mariadbd", args...)
	if err != nil {
		return err
	}
	cmd.Stdin = strings.NewReader(script)
	if err := runQuiet(cmd); err != nil {
		return fmt.Errorf("making a data directory: %w", err)
	}
	return nil
}

// mariaBootstrap returns what the bootstrap reads, a statement a line.
func mariaBootstrap(u unpacked) (string, error) {
	var script bytes.Buffer
	script.WriteString("create database if not exists mysql;\nuse mysql;\nset @auth_root_socket=NULL;\nset @current_hostname='localhost';\n")
	// The names differ between releases: each has one of a pair.
	for _, names := range [][]string{
		{"mysql_system_tables.sql", "mariadb_system_tables.sql"},
		{"mysql_performance_tables.sql", "mariadb_performance_tables.sql"},
		{"mysql_system_tables_data.sql", "mariadb_system_tables_data.sql"},
		{"maria_add_gis_sp_bootstrap.sql"},
		{"mysql_sys_schema.sql", "mariadb_sys_schema.sql"},
	} {
		var paths []string
		for _, n := range names {
			paths = append(paths, filepath.Join(strings.TrimPrefix(mariaShare(u), u.path()), n))
		}
		text, err := os.ReadFile(u.first(paths...))
		if err != nil {
			return "", err
		}
		script.Write(text)
		script.WriteString("\n")
	}
	script.WriteString(strings.TrimSpace(mariaAccounts) + "\n")
	return script.String(), nil
}
