package mysql

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-data/daybook/pipeline"
	driver "github.com/go-sql-driver/mysql"
)

// The flavors, with the names that the replication library uses.
const (
	flavorMySQL   = "mysql"
	flavorMariaDB = "mariadb"
)

// server is the database as a client of SQL sees it: a connection pool and the
// facts that don't change while it runs.
type server struct {
	db      *sql.DB
	flavor  string
	version string
	number  int    // 90704 for 9.7.4
	uuid    string // server_uuid; on MariaDB its server_id
	gtids   bool   // transactions have GTIDs and resuming by them works
	fold    bool   // table names ignore case

	maxLen     map[string]int    // bytes a character, by character set
	collations map[uint64]string // character set, by collation id
	tables     map[string]*charTable
}

// connect opens the pool and reads the facts.
func connect(ctx context.Context, cfg *Config, tlsConfig *tls.Config) (*server, error) {
	c := driver.NewConfig()
	c.User, c.Passwd = cfg.User, cfg.Password.Reveal()
	c.Net, c.Addr = "tcp", cfg.Addr
	c.Timeout = 10 * time.Second
	c.AllowNativePasswords = true
	c.InterpolateParams = true
	c.Logger = &driver.NopLogger{}
	if tlsConfig != nil {
		c.TLS = tlsConfig
	}
	// Values come as they are stored: text in its own character set, so that both
	// phases decode it with the same code; TIMESTAMP in UTC; CHAR without padding. The
	// others are what a server or its init_connect may have set so that a SELECT leaves
	// rows out, sees an old state, or sorts by the beginning of a value only: a key has at
	// most 3,072 bytes, with the weights of a collation some times that.
	c.Params = map[string]string{"time_zone": "'+00:00'", "character_set_results": "NULL", "sql_mode": "''",
		"autocommit": "1", "completion_type": "0", "sql_select_limit": "18446744073709551615", "sql_big_selects": "1", "max_sort_length": "32768", "sort_buffer_size": "8388608"}
	connector, err := driver.NewConnector(c)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to %s: %w", cfg.Addr, err)
	}
	s := &server{db: sql.OpenDB(connector), tables: map[string]*charTable{}}
	s.db.SetMaxOpenConns(4)
	s.db.SetConnMaxLifetime(10 * time.Minute)
	if err := s.learn(ctx); err != nil {
		s.close()
		return nil, s.explain(fmt.Errorf("asking %s who it is: %w", cfg.Addr, err), cfg)
	}
	return s, nil
}

func (s *server) close() { _ = s.db.Close() }

// explain turns an error that an operator can mend into a StopError.
func (s *server) explain(err error, cfg *Config) error {
	var e *driver.MySQLError
	if !errors.As(err, &e) {
		return err
	}
	switch e.Number {
	case 1045, 1698, 1044, 1227, 1142, 1820, 1862, 3118: // of the last, passwords that have expired and an account that is locked
		return denied(cfg, err)
	case 3159:
		return &pipeline.StopError{Code: "tls-required", Where: cfg.Addr, Err: err, Fix: "set `tls.mode: verify` (or encrypt)"}
	}
	return err
}

func denied(cfg *Config, err error) error {
	fix := fmt.Sprintf("GRANT REPLICATION SLAVE, REPLICATION CLIENT, SELECT ON *.* TO %s, or correct user and password", cfg.User)
	if cfg.TLS.Mode == tlsOff || cfg.TLS.Mode == "" {
		fix += "; where the account has to encrypt, set `tls.mode`"
	}
	return &pipeline.StopError{Code: "access-denied", Where: cfg.Addr, Err: err, Fix: fix}
}

func (s *server) learn(ctx context.Context) error {
	var fold int
	if err := s.db.QueryRowContext(ctx, "SELECT VERSION(), @@lower_case_table_names").Scan(&s.version, &fold); err != nil {
		return err
	}
	s.flavor, s.fold = flavorMySQL, fold != 0
	if strings.Contains(s.version, "MariaDB") {
		s.flavor = flavorMariaDB
	}
	s.number = versionNumber(s.version)
	if err := s.learnIdentity(ctx); err != nil {
		return err
	}
	return s.learnCharsets(ctx)
}

func versionNumber(version string) int {
	n := 0
	for i, part := range strings.SplitN(version, ".", 3) {
		end := 0
		for end < len(part) && part[end] >= '0' && part[end] <= '9' {
			end++
		}
		v, _ := strconv.Atoi(part[:end])
		n += v * []int{10000, 100, 1}[i]
	}
	return n
}

// identity names the server that the address leads to.
func (s *server) identity(ctx context.Context) (id string, err error) {
	if s.flavor == flavorMariaDB {
		err = s.db.QueryRowContext(ctx, "SELECT @@global.server_id").Scan(&id)
		return "server-id-" + id, err
	}
	err = s.db.QueryRowContext(ctx, "SELECT @@global.server_uuid").Scan(&id)
	return id, err
}

func (s *server) learnIdentity(ctx context.Context) error {
	var err error
	if s.uuid, err = s.identity(ctx); err != nil {
		return err
	}
	s.gtids, err = s.givesGTIDs(ctx)
	return err
}

func (s *server) learnCharsets(ctx context.Context) error {
	s.maxLen, s.collations = map[string]int{}, map[uint64]string{}
	rows, err := s.db.QueryContext(ctx, "SELECT CHARACTER_SET_NAME, MAXLEN FROM information_schema.CHARACTER_SETS")
	if err != nil {
		return err
	}
	err = scanAll(rows, func() error {
		var name string
		var n int
		err := rows.Scan(&name, &n)
		s.maxLen[canonicalCharset(name)] = n
		return err
	})
	if err != nil {
		return err
	}
	// On MariaDB uca1400 collations go with several character sets and their rows
	// here have no id; the table with all pairs is another one.
	query := "SELECT ID, CHARACTER_SET_NAME FROM information_schema.COLLATIONS WHERE ID IS NOT NULL AND CHARACTER_SET_NAME IS NOT NULL"
	if s.flavor == flavorMariaDB && s.number >= 101000 {
		query = "SELECT ID, CHARACTER_SET_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY WHERE ID IS NOT NULL"
	}
	if rows, err = s.db.QueryContext(ctx, query); err != nil {
		return err
	}
	return scanAll(rows, func() error {
		var id uint64
		var cs string
		err := rows.Scan(&id, &cs)
		s.collations[id] = canonicalCharset(cs)
		return err
	})
}

// scanAll calls scan for each row and closes rows.
func scanAll(rows *sql.Rows, scan func() error) error {
	defer rows.Close()
	for rows.Next() {
		if err := scan(); err != nil {
			return err
		}
	}
	return rows.Err()
}

// dialect returns how the server reads statements under the given sql_mode bits.
func (s *server) dialect(sqlMode uint64) dialect {
	const ansiQuotes, noBackslash = 1 << 2, 1 << 20
	return dialect{
		ansiQuotes: sqlMode&ansiQuotes != 0, noBackslash: sqlMode&noBackslash != 0,
		version: s.number, mariaDB: s.flavor == flavorMariaDB,
	}
}

// logEnd is the end of the binary log at some moment.
type logEnd struct {
	place
	gtids gtidSet // all transactions the server has executed
	// only and not are databases that alone are logged, or are not.
	only, not string
}

// end asks for the end of the log.
func (s *server) end(ctx context.Context) (logEnd, error) {
	var e logEnd
	query := "SHOW MASTER STATUS"
	if s.flavor == flavorMySQL && s.number >= 80200 {
		query = "SHOW BINARY LOG STATUS"
	}
	rows, err := s.db.QueryContext(ctx, query)
	if err != nil {
		return e, fmt.Errorf("asking for the end of the binary log: %w", err)
	}
	found := false
	err = scanAll(rows, func() error {
		found = true
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		var gtids string
		dest := []any{&e.File, &e.Pos}
		for _, name := range columns[2:] {
			switch name {
			case "Executed_Gtid_Set":
				dest = append(dest, &gtids)
			case "Binlog_Do_DB":
				dest = append(dest, &e.only)
			case "Binlog_Ignore_DB":
				dest = append(dest, &e.not)
			default:
				dest = append(dest, new(sql.RawBytes))
			}
		}
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		e.gtids, err = parseGTIDs(s.flavor, gtids)
		return err
	})
	if err != nil {
		return e, fmt.Errorf("asking for the end of the binary log: %w", err)
	}
	if !found {
		return e, &pipeline.StopError{Code: "no-binlog", Where: "log_bin", Err: errors.New("the server writes no binary log"),
			Fix: "start it with log_bin and binlog_format=ROW"}
	}
	if s.flavor == flavorMariaDB {
		e.gtids, err = s.mariaPosition(ctx, e.place)
	}
	return e, err
}

// mariaPosition returns the transactions up to a place of the log. They must not be
// asked for apart from the place: one that is logged between would count as read.
func (s *server) mariaPosition(ctx context.Context, p place) (gtidSet, error) {
	var text sql.NullString
	if err := s.db.QueryRowContext(ctx, "SELECT BINLOG_GTID_POS(?, ?)", p.File, p.Pos).Scan(&text); err != nil {
		return nil, fmt.Errorf("asking for the GTID position at %s: %w", p, err)
	}
	if !text.Valid {
		return nil, fmt.Errorf("asking for the GTID position at %s: the server does not know it", p)
	}
	return parseGTIDs(s.flavor, text.String)
}

// executed returns the transactions that are committed and visible to new reads.
func (s *server) executed(ctx context.Context) (gtidSet, string, error) {
	var text, uuid string
	if err := s.db.QueryRowContext(ctx, "SELECT @@global.gtid_executed, @@global.server_uuid").Scan(&text, &uuid); err != nil {
		return nil, "", fmt.Errorf("asking for the executed transactions: %w", err)
	}
	set, err := parseGTIDs(s.flavor, text)
	return set, uuid, err
}
