package services

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// MySQL is a running MySQL or MariaDB with binlog in row format and GTIDs.
//
// Its accounts, password equal to the name: app (all rights), repl (replication
// and reading), plain (the database test only); root has no password. MariaDB
// has repl_ed (password repl) besides, which uses ed25519.
type MySQL struct {
	*Server
	Flavor  string // "mysql" or "mariadb"
	Version string // as the server tells it, such as "9.7.4-2"

	files unpacked
}

// flavor is what differs between MySQL and MariaDB.
type flavor struct {
	name     string
	debian   debian
	program  string                  // below the root
	settings func(unpacked) []string // paths, for the bootstrap too
	serve    []string                // for a running server
	variants map[string][]string
}

// startDatabase starts a server of the flavor on a copy of the installation's
// template, or on the data that the directory holds already.
func startDatabase(ctx context.Context, f flavor, o Options) (*MySQL, error) {
	variant, err := f.variantArgs(o.Variant)
	if err != nil {
		return nil, err
	}
	c, err := openCache()
	if err != nil {
		return nil, err
	}
	files, err := f.debian.install(ctx, c)
	if err != nil {
		return nil, err
	}
	s, err := newServer(ctx, c, f.name, o)
	if err != nil {
		return nil, err
	}
	m := &MySQL{Server: s, Flavor: f.name, files: files}
	data := filepath.Join(s.Dir, "data")
	args := slices.Concat(f.settings(files), []string{
		"--datadir=" + data, "--socket=server.sock", "--pid-file=server.pid",
		"--bind-address=127.0.0.1", fmt.Sprintf("--port=%d", s.port.port),
		"--server-id=1", "--log-bin=binlog", "--innodb-buffer-pool-size=64M", "--max-connections=200",
		// A killed server loses nothing by these two, only a dead machine does.
		"--innodb-flush-log-at-trx-commit=2", "--sync-binlog=0",
	}, f.serve, variant, o.Args)
	err = m.open(ctx, launch{
		name: f.name,
		command: func(context.Context) (*exec.Cmd, error) {
			if err := copyTemplate(files.dir, data); err != nil {
				return nil, err
			}
			return files.command(context.Background(), f.program, args...)
		},
		ready: func(ctx context.Context) error { return m.greet(ctx, data) },
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// variantArgs translates the shorthands of Options.Variant.
func (f flavor) variantArgs(list string) ([]string, error) {
	var args []string
	for name := range strings.SplitSeq(list, ",") {
		if name == "" {
			continue
		}
		a, ok := f.variants[name]
		if !ok {
			return nil, fmt.Errorf("%s has no variant %q", f.name, name)
		}
		args = append(args, a...)
	}
	return args, nil
}

// copyTemplate gives a new server its data; data already there stays.
func copyTemplate(install, data string) error {
	if _, err := os.Stat(data); err == nil {
		return nil
	}
	part := data + ".part"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	if err := os.CopyFS(part, os.DirFS(filepath.Join(install, "template"))); err != nil {
		return err
	}
	return os.Rename(part, data)
}

// greet logs in and asks whose server it is: on a taken port another one's
// could answer.
func (m *MySQL) greet(ctx context.Context, data string) error {
	db, err := sql.Open("mysql", m.DSN("", "root"))
	if err != nil {
		return err
	}
	defer db.Close()
	var dir string
	if err := db.QueryRowContext(ctx, "SELECT @@datadir, @@version").Scan(&dir, &m.Version); err != nil {
		return err
	}
	if filepath.Clean(dir) != data {
		return fmt.Errorf("the server of %s answers on %s", dir, m.Addr)
	}
	return nil
}

// DSN returns the data source name of a database (or none) for one of the
// accounts, as the driver "mysql" of database/sql takes it, without parameters:
// append "?name=value" for those. This package brings the driver.
func (m *MySQL) DSN(database, user string) string {
	c := mysql.NewConfig()
	c.User, c.Passwd = user, passwordOf(user)
	c.Net, c.Addr, c.DBName = "tcp", m.Addr, database
	return c.FormatDSN()
}

// Command returns a command that runs one of the server's client programs, such
// as mysqlbinlog, without connection arguments.
func (m *MySQL) Command(ctx context.Context, program string, args ...string) (*exec.Cmd, error) {
	return m.files.command(ctx, filepath.Join("usr", "bin", program), args...)
}
