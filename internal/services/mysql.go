package services

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// StartMySQL installs MySQL 9 if needed and starts a server. It runs without the
// performance schema, which would double its 290 MB; Options.Args can switch it
// on.
//
// Variants: nogtid, minimal, noblob (row images), compress (transactions),
// fullmeta, partialjson, nochecksum, rowsquery.
func StartMySQL(ctx context.Context, o Options) (*MySQL, error) {
	return startDatabase(ctx, mysqlFlavor(), o)
}

func mysqlFlavor() flavor {
	return flavor{
		name:     "mysql",
		debian:   mysqlDebian(),
		program:  "usr/sbin/mysqld",
		settings: mysqlSettings,
		serve: []string{"--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--innodb-redo-log-capacity=64M",
			"--performance-schema=OFF"},
		variants: map[string][]string{
			"nogtid":      {"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"},
			"minimal":     {"--binlog-row-image=MINIMAL"},
			"noblob":      {"--binlog-row-image=NOBLOB"},
			"compress":    {"--binlog-transaction-compression=ON"},
			"fullmeta":    {"--binlog-row-metadata=FULL"},
			"partialjson": {"--binlog-row-value-options=PARTIAL_JSON"},
			"nochecksum":  {"--binlog-checksum=NONE"},
			"rowsquery":   {"--binlog-rows-query-log-events=ON"},
		},
	}
}

func mysqlDebian() debian {
	return debian{
		name:         "mysql",
		suite:        "sid", // the only release that has MySQL
		packages:     []string{"mysql-server-core", "mysql-client-core"},
		finish:       initMySQL,
		finishInputs: "1" + mysqlAccounts,
	}
}

func mysqlSettings(u unpacked) []string {
	s := []string{
		"--no-defaults", "--basedir=" + u.path("usr"),
		"--lc-messages-dir=" + u.path("usr/share/mysql"),
		"--character-sets-dir=" + u.path("usr/share/mysql/charsets"),
		"--plugin-dir=" + u.path("usr/lib/mysql/plugin"),
		"--secure-file-priv=", "--mysqlx=OFF", "--log-error-verbosity=2",
	}
	return append(s, asRoot()...)
}

// asRoot returns the argument without which a database refuses to run as root.
// It stays root, for a process that changes its user loses its death signal.
func asRoot() []string {
	if os.Geteuid() == 0 {
		return []string{"--user=root"}
	}
	return nil
}

// initMySQL makes the template of a data directory, with the accounts.
func initMySQL(ctx context.Context, u unpacked) error {
	accounts := filepath.Join(u.dir, "accounts.sql")
	if err := os.WriteFile(accounts, []byte(strings.TrimSpace(mysqlAccounts)+"\n"), 0o644); err != nil {
		return err
	}
	template := filepath.Join(u.dir, "template")
	args := append(mysqlSettings(u), "--datadir="+template, "--disable-log-bin", "--initialize-insecure",
		"--innodb-redo-log-capacity=64M", "--init-file="+accounts)
	cmd, err := u.command(ctx, "usr/sbin/mysqld", args...)
	if err != nil {
		return err
	}
	if err := runQuiet(cmd); err != nil {
		return fmt.Errorf("making a data directory: %w", err)
	}
	// Every copy makes its own server_uuid.
	if err := os.Remove(filepath.Join(template, "auto.cnf")); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}
