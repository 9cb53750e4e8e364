package mysql_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/daybook-data/daybook/internal/services"
	"github.com/daybook-data/daybook/sources/sourcetest"
)

// replicate makes a server follow another one.
func replicate(t *testing.T, r *rig, from *services.MySQL) {
	t.Helper()
	host, port, err := net.SplitHostPort(from.Addr)
	if err != nil {
		t.Fatal(err)
	}
	if from.Flavor == "mariadb" {
		r.exec(fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='%s', MASTER_PORT=%s, MASTER_USER='repl', MASTER_PASSWORD='repl', MASTER_USE_GTID=slave_pos", host, port), "START SLAVE")
		return
	}
	r.exec(fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST='%s', SOURCE_PORT=%s, SOURCE_USER='repl', SOURCE_PASSWORD='repl', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1", host, port), "START REPLICA")
}

// promote waits until the rig's server has all that the other has, and makes it the one
// that is written to.
func promote(t *testing.T, r *rig, from *rig) {
	t.Helper()
	if r.server.Flavor == "mariadb" {
		var pos string
		if err := from.db.QueryRow("SELECT @@gtid_binlog_pos").Scan(&pos); err != nil {
			t.Fatal(err)
		}
		r.exec(fmt.Sprintf("DO MASTER_GTID_WAIT('%s', 60)", pos), "STOP SLAVE", "RESET SLAVE ALL")
		return
	}
	var set string
	if err := from.db.QueryRow("SELECT @@gtid_executed").Scan(&set); err != nil {
		t.Fatal(err)
	}
	r.exec(fmt.Sprintf("DO WAIT_FOR_EXECUTED_GTID_SET('%s', 60)", set), "STOP REPLICA", "RESET REPLICA ALL")
}

// With GTIDs the address may be led to another replica at any time: inside the snapshot,
// behind it, after a crash. Nothing is missing, nothing comes twice.
func TestFailover(t *testing.T) {
	for _, flavor := range []string{"mysql", "mariadb"} {
		t.Run(flavor, func(t *testing.T) {
			t.Parallel()
			start, args := services.MySQLForTest, []string{"--binlog-row-event-max-size=1024"}
			if flavor == "mariadb" {
				start, args = services.MariaDBForTest, append(args, "--log-slave-updates=ON", "--gtid-ignore-duplicates=OFF")
			}
			one := start(t, services.Options{})
			two := start(t, services.Options{Args: append(args, "--server-id=2", "--log-bin=other-name")})
			r := newRig(t, one)
			second := *r // the same database on the other server
			second.server = two
			second.cfg.Addr = two.Addr
			root, err := openRoot(two)
			if err != nil {
				t.Fatal(err)
			}
			second.db = root
			t.Cleanup(func() { _ = root.Close() })
			replicate(t, &second, one)

			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			rng := rand.New(rand.NewPCG(seed, 5))
			r.cfg.ChunkRows = 40
			r.exec("CREATE TABLE k (id INT PRIMARY KEY, v VARCHAR(40), n INT)", "CREATE TABLE z (id INT, v VARCHAR(40), n INT)",
				"CREATE TABLE o (id INT PRIMARY KEY, v VARCHAR(400), n INT)")
			r.insertRows("k", 1, 3000)
			r.insertRows("z", 1, 10)
			run := r.start(nil) // this one fixes where it starts
			r.await("the first chunk", func() bool { r.alive(run); return len(r.changes("k")) > 0 })
			run.out.FailEmit(0, sourcetest.ErrFenced)
			<-run.done
			stopWriters := r.writers("k", 2, 4000)
			ids := 0
			insert := func(on *rig) {
				rows := "BEGIN"
				for range 1 + rng.IntN(12) {
					ids++
					rows += fmt.Sprintf("; INSERT INTO o VALUES (%d, REPEAT('x', 390), 0); INSERT INTO z VALUES (%[1]d, 'z', 0)", ids)
				}
				on.exec(rows + "; COMMIT")
			}
			crash := func(on *rig) {
				insert(on)
				run := on.start(rng)
				run.out.FailEmit(rng.IntN(20), sourcetest.ErrFenced)
				time.AfterFunc(time.Duration(50+rng.IntN(150))*time.Millisecond, run.cancel)
				insert(on)
				<-run.done
				for _, f := range run.out.Faults() {
					t.Error(f)
				}
			}
			for range 4 {
				crash(r)
			}
			stopWriters()
			promote(t, &second, r)
			second.db, second.name = second.open("time_zone=%27%2B00%3A00%27&sql_mode=%27%27"), r.name
			stopWriters = second.writers("k", 2, 4000)
			for range 6 {
				crash(&second)
			}
			stopWriters()
			second.exec("ALTER TABLE z ADD COLUMN pk INT AUTO_INCREMENT PRIMARY KEY") // parked on the one, mended on the other
			second.once()
			second.equal("k", "z", "o")
			seen := map[string]int{}
			for _, c := range second.changes("o") {
				seen[fmt.Sprint(c.Op, c.After["id"])]++
			}
			for id := 1; id <= ids; id++ {
				if n := seen[fmt.Sprint("c", id)]; n != 1 {
					t.Errorf("o: the insert of %d came %d times", id, n)
				}
			}
		})
	}
}
