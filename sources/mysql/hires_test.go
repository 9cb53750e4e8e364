package mysql_test

import (
	"testing"

	"github.com/daybook-data/daybook/internal/services"
)

// Times in the form that MariaDB had before it took over MySQL's are the same times.
func TestTimesInMariaDBsOwnForm(t *testing.T) {
	t.Parallel()
	r := newRig(t, services.MariaDBForTest(t, services.Options{Args: []string{"--mysql56-temporal-format=OFF"}}))
	r.exec("CREATE TABLE t (id INT PRIMARY KEY, d DATETIME, d1 DATETIME(1), d3 DATETIME(3), d6 DATETIME(6), s TIMESTAMP NULL, s2 TIMESTAMP(2) NULL, s6 TIMESTAMP(6) NULL, m TIME, m3 TIME(3), m6 TIME(6), dd DATE, q INT)",
		"INSERT INTO t VALUES (1,'2024-02-29 23:59:59','2024-02-29 23:59:59.9','2024-02-29 23:59:59.999','2024-02-29 23:59:59.999999','2024-02-29 23:59:59','2024-02-29 23:59:59.99','2024-02-29 23:59:59.999999','-12:34:56','-12:34:56.7','-838:59:59.999999','2024-02-29',7)")
	r.once()
	r.equal("t")
	r.exec("INSERT INTO t SELECT 2, d, d1, d3, d6, s, s2, s6, m, m3, m6, dd, q FROM t",
		"INSERT INTO t (id, d6, s6, m6, m3) VALUES (3,0,0,0,0),(4,'9999-12-31 23:59:59.999999','1970-01-01 00:00:01.000001','838:59:59.999999','-00:00:00.001'),(5,'0001-00-00','2038-01-19 03:14:07','-00:00:00.000001','10:00:00.5')")
	r.once()
	r.equal("t")
}
