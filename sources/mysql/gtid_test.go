package mysql_test

import (
	"fmt"
	"testing"

	"github.com/daybook-data/daybook/internal/services"
)

// Tagged and untagged transactions, and gaps, are kept apart over restarts.
func TestTaggedTransactions(t *testing.T) {
	r := newRig(t, services.MySQLForTest(t, services.Options{}))
	r.exec("CREATE TABLE g (id INT PRIMARY KEY)")
	r.once()
	conn, err := r.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	next := []string{"AUTOMATIC", "AUTOMATIC:blue", "AUTOMATIC", "AUTOMATIC:red", "AUTOMATIC:blue", "AUTOMATIC"}
	for round := range 5 {
		for i, n := range next {
			id := round*len(next) + i
			for _, q := range []string{"SET gtid_next = '" + n + "'", fmt.Sprintf("INSERT INTO g VALUES (%d)", id), "SET gtid_next = AUTOMATIC"} {
				if _, err := conn.ExecContext(t.Context(), q); err != nil {
					t.Fatalf("%s: %v", q, err)
				}
			}
			if i%2 == 0 {
				r.once()
			}
		}
	}
	for _, q := range []string{"SET gtid_next = '11111111-2222-3333-4444-555555555555:77'", "INSERT INTO g VALUES (1000)", "SET gtid_next = AUTOMATIC",
		"SET gtid_next = '11111111-2222-3333-4444-555555555555:5'", "INSERT INTO g VALUES (1001)", "SET gtid_next = AUTOMATIC"} {
		if _, err := conn.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	r.once()
	r.equal("g")
	r.onePerPosition()
	if n := len(r.changes("g")); n != 32 {
		t.Errorf("%d records of 32 rows", n)
	}
}

// MariaDB's domains are independent streams.
func TestSeveralDomains(t *testing.T) {
	r := newRig(t, services.MariaDBForTest(t, services.Options{}))
	r.exec("CREATE TABLE g (id INT PRIMARY KEY)")
	r.once()
	for i := range 20 {
		r.exec(fmt.Sprintf("SET SESSION gtid_domain_id = %d; INSERT INTO g VALUES (%d)", 1+i%3, i))
		if i%3 == 0 {
			r.once()
		}
	}
	r.once()
	r.equal("g")
	r.onePerPosition()
}
