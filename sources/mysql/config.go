package mysql

import (
	"crypto/tls"
	"fmt"
	"net"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/internal/certs"
	"github.com/daybook-data/daybook/pipeline"
)

// Config is the section `mysql` of a source.
type Config struct {
	Addr      string
	User      string
	Password  configs.Secret
	Tables    []string
	Start     string
	ServerID  int
	ZeroDate  string
	Truncate  string
	Cascades  string
	ChunkRows int
	TLS       TLSConfig
}

// The values of Config.Start.
const (
	startSnapshot = "snapshot"
	startReplace  = "replace"
	startLatest   = "latest"
)

// The values of Config.ZeroDate.
const (
	zeroText  = "text"
	zeroNull  = "null"
	zeroEpoch = "epoch"
)

// The values of Config.Cascades.
const (
	cascadesStop   = "stop"
	cascadesIgnore = "ignore"
)

// The values of Config.Truncate.
const (
	truncatePropagate = "propagate"
	truncateIgnore    = "ignore"
	truncateStop      = "stop"
)

var _ pipeline.SourceConfig = (*Config)(nil)

// Spec returns the entry for the list of the kinds of source.
func Spec() pipeline.SourceSpec {
	return pipeline.SourceSpec{
		Kind: "mysql",
		Doc:  "Changes of MySQL or MariaDB tables: a snapshot of the rows that are there, then the row binlog.",
		New:  func() pipeline.SourceConfig { return &Config{} },

		Changes: true,
	}
}

// Fields declares the section.
func (c *Config) Fields(f *configs.Fields) {
	f.String(&c.Addr, "addr", "127.0.0.1:3306", "Address of the server, host:port.", configs.HostPort)
	f.String(&c.User, "user", "", "Account with REPLICATION SLAVE, REPLICATION CLIENT and SELECT on the captured tables.", configs.Required, configs.NotEmpty)
	f.Secret(&c.Password, "password", "Its password.")
	f.Strings(&c.Tables, "tables", nil, "Captured tables, as database.table with * and ? as wildcards (`shop.*`), or /regular expression/ for the whole of database.table; !pattern takes away. Case counts unless the server folds table names (lower_case_table_names).", configs.Required, configs.NotEmpty, tablePatterns)
	f.String(&c.Start, "start", startSnapshot, "Where a first start begins: snapshot reads the rows that are there and then the log; replace does too, and empties the tables at the sinks before, for a stream that has rows of them from another source; latest reads only what is logged from now on.", configs.Enum(startSnapshot, startReplace, startLatest))
	f.Int(&c.ServerID, "server_id", 0, "Id under which this source registers as a replica; no two replicas of a server may share one. 0 derives one from the names of pipeline and source.", configs.Range(0, 1<<32-1))
	f.String(&c.ZeroDate, "zero_date", zeroText, "What becomes of dates with a zero day or month, such as 0000-00-00: text keeps them as SELECT shows them, \"null\" makes them null, epoch makes them 1970-01-01. Keys always keep their text.", configs.Enum(zeroText, zeroNull, zeroEpoch))
	f.String(&c.Truncate, "truncate", truncatePropagate, "What becomes of a captured table's rows when the table is emptied or dropped, which the log does not show row by row: propagate emits an op `t`, ignore counts it, stop parks the table: its changes are left out until you act.", configs.Enum(truncatePropagate, truncateIgnore, truncateStop))
	f.String(&c.Cascades, "cascades", cascadesStop, "What to do about foreign keys of captured tables that delete or change rows themselves (ON DELETE CASCADE and the like): MariaDB, and MySQL before 9.6, do not log those changes. stop parks such tables, ignore accepts that these changes are not seen.", configs.Enum(cascadesStop, cascadesIgnore))
	f.Int(&c.ChunkRows, "chunk_rows", 10_000, "Rows that the snapshot reads at a time; fewer where rows are long.", configs.Range(1, 1_000_000))
	f.Sub(&c.TLS, "tls", "Encryption of the connections.")
}

var tablePatterns = configs.Func("each database.table, /regular expression/ or !pattern", func(patterns []string) error {
	_, err := newSelection(patterns, false)
	return err
})

// OpenSource returns the source. It does not connect.
func (c *Config) OpenSource(env pipeline.SourceEnv) (pipeline.Source, error) {
	return New(*c, env)
}

// TLSConfig is the section `tls`.
type TLSConfig struct {
	Mode       string
	CA         string
	Cert       string
	Key        string
	ServerName string
}

// The values of TLSConfig.Mode.
const (
	tlsOff       = "off"
	tlsEncrypt   = "encrypt"
	tlsVerify    = "verify"
	tlsNeedsMode = "has no effect with `mode: off`"
)

// Fields declares the section.
func (t *TLSConfig) Fields(f *configs.Fields) {
	f.String(&t.Mode, "mode", tlsOff, "off, encrypt (without checking who answers), or verify (certificate and name are checked).", configs.Enum(tlsOff, tlsEncrypt, tlsVerify))
	f.String(&t.CA, "ca", "", "File with the certificates that are trusted, PEM; empty trusts the system's.")
	f.String(&t.Cert, "cert", "", "File with the client's certificate, PEM.")
	f.String(&t.Key, "key", "", "File with the key of the client's certificate, PEM.")
	f.String(&t.ServerName, "server_name", "", "Name that the server's certificate must carry, where it is not the host of `addr`.")
}

// Check holds the rules between the fields.
func (t *TLSConfig) Check(at *configs.At) {
	if t.Mode == tlsOff {
		for _, key := range []string{"ca", "cert", "key", "server_name"} {
			if at.Has(key) {
				at.Errorf(key, tlsNeedsMode)
			}
		}
		return
	}
	if (t.Cert == "") != (t.Key == "") {
		at.Errorf("cert", "`cert` and `key` go together")
		return
	}
	if _, err := t.config("localhost:3306"); err != nil {
		at.Errorf("", "%v", err)
	}
}

// config returns what crypto/tls wants, nil where the connection is plain.
func (t *TLSConfig) config(addr string) (*tls.Config, error) {
	if t.Mode == tlsOff || t.Mode == "" {
		return nil, nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", addr, err)
	}
	c := &tls.Config{ServerName: host, InsecureSkipVerify: t.Mode == tlsEncrypt, MinVersion: tls.VersionTLS12}
	if t.ServerName != "" {
		c.ServerName = t.ServerName
	}
	if t.CA != "" {
		if c.RootCAs, err = certs.Authorities(t.CA); err != nil {
			return nil, fmt.Errorf("reading tls.ca: %w", err)
		}
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("reading tls.cert and tls.key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
