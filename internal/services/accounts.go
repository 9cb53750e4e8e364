package services

// The accounts that every MySQL and MariaDB has, the password equal to the
// name: app may do all, repl may replicate and read, plain has the database
// test only. root has no password. They are made before the binlog exists, so
// they are no events in it. One statement a line, as the bootstrap wants it.

const mysqlAccounts = `
CREATE USER root@'%' IDENTIFIED WITH caching_sha2_password BY '';
GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;
CREATE USER app@'%' IDENTIFIED WITH caching_sha2_password BY 'app';
GRANT ALL ON *.* TO app@'%' WITH GRANT OPTION;
CREATE USER repl@'%' IDENTIFIED WITH caching_sha2_password BY 'repl';
GRANT REPLICATION SLAVE, REPLICATION CLIENT, SELECT, RELOAD, LOCK TABLES, SHOW VIEW, TRIGGER, EVENT, PROCESS, SHOW DATABASES ON *.* TO repl@'%';
CREATE USER plain@'%' IDENTIFIED WITH caching_sha2_password BY 'plain';
CREATE DATABASE test CHARACTER SET utf8mb4;
GRANT ALL ON test.* TO plain@'%';
`

// repl_ed is repl with MariaDB's own password method; its password is repl too.
const mariaAccounts = `
FLUSH PRIVILEGES;
INSTALL SONAME 'auth_ed25519';
CREATE USER root@'%';
GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;
CREATE USER app@'%' IDENTIFIED BY 'app';
GRANT ALL ON *.* TO app@'%' WITH GRANT OPTION;
CREATE USER repl@'%' IDENTIFIED BY 'repl';
GRANT REPLICATION SLAVE, BINLOG MONITOR, SELECT, RELOAD, LOCK TABLES, SHOW VIEW, TRIGGER, EVENT, PROCESS, SHOW DATABASES ON *.* TO repl@'%';
CREATE USER repl_ed@'%' IDENTIFIED VIA ed25519 USING PASSWORD('repl');
GRANT REPLICATION SLAVE, BINLOG MONITOR, SELECT, RELOAD, LOCK TABLES, SHOW VIEW, TRIGGER, EVENT, PROCESS, SHOW DATABASES ON *.* TO repl_ed@'%';
CREATE USER plain@'%' IDENTIFIED BY 'plain';
CREATE DATABASE IF NOT EXISTS test CHARACTER SET utf8mb4;
GRANT ALL ON test.* TO plain@'%';
`

// passwordOf returns the password of one of the accounts.
func passwordOf(user string) string {
	switch user {
	case "root":
		return ""
	case "repl_ed":
		return "repl"
	default:
		return user
	}
}
