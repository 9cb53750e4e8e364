package mysql_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/internal/services"
)

// each runs a test on MySQL and on MariaDB.
func each(t *testing.T, test func(t *testing.T, server *services.MySQL)) {
	t.Run("mysql", func(t *testing.T) { t.Parallel(); test(t, pool.MySQL(t)) })
	t.Run("mariadb", func(t *testing.T) { t.Parallel(); test(t, pool.MariaDB(t)) })
}

// typeMatrix is a table with every supported type, and rows with their worst values.
var typeMatrix = []string{`CREATE TABLE m (
	id INT PRIMARY KEY,
	ti TINYINT, tu TINYINT UNSIGNED, si SMALLINT, su SMALLINT UNSIGNED, mi MEDIUMINT, mu MEDIUMINT UNSIGNED,
	i INT, iu INT UNSIGNED, bi BIGINT, bu BIGINT UNSIGNED, zf INT(7) ZEROFILL, bo BOOL,
	b1 BIT(1), b12 BIT(12), b64 BIT(64), y YEAR,
	de DECIMAL(10,3), d65 DECIMAL(65,30), d0 DECIMAL(20,0), du DECIMAL(5,5) UNSIGNED,
	f FLOAT, d DOUBLE, fd FLOAT(7,4), dd DOUBLE(10,2), fu FLOAT UNSIGNED,
	c CHAR(10), v VARCHAR(300), vl VARCHAR(20) CHARACTER SET latin1, va VARCHAR(20) CHARACTER SET ascii, vu VARCHAR(20) CHARACTER SET utf8mb3,
	v2 VARCHAR(20) CHARACTER SET ucs2, v16 VARCHAR(20) CHARACTER SET utf16, v32 CHAR(20) CHARACTER SET utf32, vc CHAR(20) CHARACTER SET cp1251,
	tt TINYTEXT, tx TEXT, mt MEDIUMTEXT, lt LONGTEXT, tl TEXT CHARACTER SET latin1,
	bn BINARY(8), vb VARBINARY(300), tb TINYBLOB, bl BLOB, mb MEDIUMBLOB, lb LONGBLOB,
	e ENUM('a','b,c','it''s','"q"','ü','back\\slash'), s SET('x','y z','ü','q'''), el ENUM('é','z') CHARACTER SET latin1,
	da DATE, dt DATETIME, dt3 DATETIME(3), dt6 DATETIME(6), ts TIMESTAMP NULL, ts1 TIMESTAMP(1) NULL, ts6 TIMESTAMP(6) NULL,
	tm TIME, tm2 TIME(2), tm4 TIME(4), tm6 TIME(6),
	j JSON,
	gv INT GENERATED ALWAYS AS (i + 1) VIRTUAL, gs VARCHAR(310) GENERATED ALWAYS AS (CONCAT('<', v, '>')) STORED
) CHARACTER SET utf8mb4`,
	`INSERT INTO m (id) VALUES (1)`,
	`INSERT INTO m (id, ti, tu, si, su, mi, mu, i, iu, bi, bu, zf, bo, b1, b12, b64, y, de, d65, d0, du, f, d, fd, dd, fu) VALUES
	(2, -128, 255, -32768, 65535, -8388608, 16777215, -2147483648, 4294967295, -9223372036854775808, 18446744073709551615, 42, TRUE,
	 b'1', b'101010101010', 0xFFFFFFFFFFFFFFFF, 2155, -1234567.891, -12345678901234567890123456789012345.012345678901234567890123456789, 12345678901234567890, 0.00001,
	 1.2345678, 1.7976931348623157e308, 999.99991, -12345678.905, 3.4e38),
	(3, 127, 0, 32767, 0, 8388607, 0, 2147483647, 0, 9223372036854775807, 9223372036854775808, 0, FALSE,
	 b'0', b'0', 0x8000000000000000, 1901, 0.001, 0.000000000000000000000000000001, -1, 0.99999,
	 16777217, 5e-324, -0.0001, 0.005, 1e-38),
	(4, 0, 128, 0, 32768, 0, 8388608, 0, 2147483648, 0, 1, 1234567, 2, NULL, b'1', 0, 0, 0, 0, 0, 0, 0, 0.1, 123.45678, 99999999.99, 0.1),
	(5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2024, 9999999.999, 99999999999999999999999999999999999.999999999999999999999999999999, 99999999999999999999, 0.5,
	 -1e20, -123456789.123456789, 0, 0, 123456.7)`,
	`INSERT INTO m (id, c, v, vl, va, vu, v2, v16, v32, vc, tt, tx, mt, lt, tl, bn, vb, tb, bl, mb, lb, e, s, el) VALUES
	(10, 'plain', CONCAT('q"b\\s/', CHAR(10), CHAR(9), CHAR(13), CHAR(1), CHAR(8), CHAR(12), CHAR(127), '<&>'), 'é€ÿ', 'abc', 'ü漢', 'ü漢', 'ü漢😀', '😀x', 'Привет',
	 'tiny', '漢字😀', 'm', 'l', 'ÀÉ‰', 'ab', 0x00FF80C3, 0x00, 0x80, 0xFFFE, 0x010203, 'b,c', 'x,y z', 'é'),
	(11, 'pad  ', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', 'it''s', '', 'z'),
	(12, '', REPEAT('ü', 300), REPEAT('ß', 20), 'x', 'x', 'x', 'x', 'x', 'x', REPEAT('t', 255), REPEAT('x', 40000), REPEAT('漢', 30000), REPEAT('l', 70000), REPEAT('é', 300),
	 0x0000000000000000, REPEAT(0x80, 300), REPEAT(0x01, 255), REPEAT(0xC3, 40000), REPEAT(0x00, 70000), REPEAT(0xFF, 70000), 'back\\slash', 'x,y z,ü,q''', 'z'),
	(13, 'z', '\0nul', X'8081828D9091', 'z', 'z', 'z', 'z', 'z', 'z', 'z', 'z', 'z', 'z', 'z', 0x0100000000000000, '', 'z', 'z', 'z', 'z', 'ü', 'ü', 'z'),
	(14, '"', '\\', 'z', 'z', 'z', 'z', 'z', 'z', 'z', 'z', 'z', 'z', 'z', 'z', 0x0000000000000001, 'z', 'z', 'z', 'z', 'z', '"q"', 'q''', 'z')`,
	`INSERT INTO m (id, da, dt, dt3, dt6, ts, ts1, ts6, tm, tm2, tm4, tm6) VALUES
	(20, '2024-02-29', '2024-02-29 23:59:59', '2024-02-29 23:59:59.999', '2024-02-29 23:59:59.999999', '2024-02-29 23:59:59', '2024-02-29 23:59:59.9', '2024-02-29 23:59:59.999999', '23:59:59', '23:59:59.99', '23:59:59.9999', '23:59:59.999999'),
	(21, '0000-00-00', '0000-00-00', '0000-00-00', '0000-00-00', 0, 0, 0, '00:00:00', '0', '0', '0'),
	(22, '1000-01-01', '1000-01-01 00:00:00', '9999-12-31 23:59:59.999', '0001-02-03 04:05:06.000007', '1970-01-01 00:00:01', '2038-01-19 03:14:07', '2038-01-19 03:14:07.000001', '-838:59:59', '-838:59:59', '838:59:59', '-00:00:00.000001'),
	(23, '9999-12-31', '2024-00-15 00:00:00', '2024-03-00 01:02:03', '1969-12-31 23:59:59.5', '2000-02-29 12:00:00', '1999-12-31 23:59:59', '2001-09-09 01:46:40', '-00:00:01', '-00:00:00.99', '-01:00:00.0001', '-12:34:56.654321'),
	(24, '0001-01-01', '2024-11-03 01:30:00', '2024-03-10 02:30:00', '2024-03-31 02:30:00.1', '2024-11-03 05:30:00', '2024-11-03 06:30:00.5', '2024-03-10 07:00:00', '100:00:00', '-00:01:00.5', '-100:00:00.5', '838:59:59')`,
	`INSERT INTO m (id, c, j) VALUES (30, 'a', '{"b": 1, "a": [1, 2.0, -3.5e10, "x\\"y\\\\z\\u0001\\n", null, true, false, {}], "ключ": "<&>😀", "": ""}'),
	(31, 'b', '[]'), (32, 'c', '"str"'), (33, 'd', '18446744073709551615'), (34, 'e', '-9223372036854775808'), (35, 'f', 'null'), (36, 'g', '1e100'), (37, 'h', '0.1'), (38, 'i', '100000'),
	(39, 'j', '[65535, 65536, -32768, -32769, 2147483647, 2147483648, 4294967295, 4294967296]')`,
}

// jsonMySQL are JSON values that only MySQL has.
var jsonMySQL = []string{
	`INSERT INTO m (id, j) VALUES (40, JSON_OBJECT('d', CAST('2024-01-02' AS DATE), 't', CAST('-12:34:56.789' AS TIME(3)), 'dt', CAST('2024-01-02 03:04:05.6' AS DATETIME(6)), 'dec', CAST(1.50 AS DECIMAL(10,2)), 'neg', CAST(-0.05 AS DECIMAL(10,4)))),
	(41, JSON_ARRAY(CAST(x'00FF80' AS BINARY), b'101', CAST(REPEAT('x', 200) AS BINARY), TIMESTAMP'2024-01-02 03:04:05')),
	(42, CAST(CONCAT('[', REPEAT('"0123456789abcdef", ', 6000), '1]') AS JSON)),
	(43, CAST(CONCAT('{"k', REPEAT('x', 3000), '": [', REPEAT('123456789, ', 9000), '-1]}') AS JSON))`,
}

// randomJSON inserts numbers whose digits and exponents vary.
func randomJSON(rng *rand.Rand) string {
	var rows []string
	for i := range 400 {
		v := (rng.Float64() - 0.5) * pow10(rng.IntN(60)-30)
		if i%3 == 0 {
			v = float64(rng.IntN(100000)) * pow10(rng.IntN(44)-22)
		}
		rows = append(rows, fmt.Sprintf("(%d, %v, '[%v, %v]')", 1000+i, v, v, -v))
	}
	return "INSERT INTO m (id, d, j) VALUES " + strings.Join(rows, ",")
}

func pow10(n int) float64 {
	v := 1.0
	for ; n > 0; n-- {
		v *= 10
	}
	for ; n < 0; n++ {
		v /= 10
	}
	return v
}

// Values are the same in both phases, whatever has two forms. Guarantee 8.
func TestValuesEqualSelectInBothPhases(t *testing.T) {
	each(t, func(t *testing.T, server *services.MySQL) {
		inserts := append(typeMatrix[1:len(typeMatrix):len(typeMatrix)], randomJSON(rand.New(rand.NewPCG(7, 7))))
		if server.Flavor == "mysql" {
			inserts = append(inserts, jsonMySQL...)
		}
		t.Run("snapshot", func(t *testing.T) {
			r := newRig(t, server)
			r.exec(typeMatrix[0])
			r.exec(inserts...)
			r.once()
			r.equal("m")
			if c := r.changes("m"); c[0].Op != "r" || c[0].Source.Snapshot != "true" || c[len(c)-1].Source.Snapshot != "last" {
				t.Errorf("ops and snapshot marks: first %s %s, last %s, want r true and last", c[0].Op, c[0].Source.Snapshot, c[len(c)-1].Source.Snapshot)
			}
		})
		t.Run("stream", func(t *testing.T) {
			r := newRig(t, server)
			r.exec(typeMatrix[0])
			r.once()
			r.exec(inserts...)
			r.once()
			r.equal("m")
			if c := r.changes("m"); c[0].Op != "c" || c[0].Source.Snapshot != "false" {
				t.Errorf("the first change is %s with snapshot %s, want c and false", c[0].Op, c[0].Source.Snapshot)
			}
			r.exec("UPDATE m SET c = 'touched'", "DELETE FROM m WHERE id = 2")
			r.once()
			r.equal("m")
		})
	})
}
