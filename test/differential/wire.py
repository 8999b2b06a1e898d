"""A small PostgreSQL client: the simple query protocol over a Unix socket.

It exists because the driver has to send a statement and look away: a
statement may block until another session has done something.  One thread
talks to many sessions; nothing here waits unless it says so.  Only the
standard library is used.
"""

import select
import socket
import struct


class ServerGone(Exception):
    """The connection broke: the server (or the backend) has crashed."""


class Result:
    """The answer to one query string (of one or more statements)."""

    __slots__ = ("rows", "tags", "error", "message", "detail", "notices")

    def __init__(self):
        self.rows = []          # of all its statements
        self.tags = []          # command tags, "UPDATE 1"
        self.error = None       # SQLSTATE
        self.message = None
        self.detail = None
        self.notices = []


class Connection:
    def __init__(self, host, port, user, database, options=""):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(f"{host}/.s.PGSQL.{port}")
        self.buf = bytearray()
        self.status = None      # I idle, T in a transaction, E in a failed one
        self.pid = None
        self.result = None      # of the query under way
        self.busy = False
        params = {"user": user, "database": database, "options": options,
                  "application_name": "inplace differential",
                  "client_encoding": "UTF8"}
        body = b"".join(k.encode() + b"\0" + v.encode() + b"\0"
                        for k, v in params.items() if v) + b"\0"
        self.sock.sendall(struct.pack("!ii", len(body) + 8, 196608) + body)
        self.result = Result()
        self.busy = True
        self.wait()
        if self.result.error:
            raise ServerGone(self.result.message)

    def fileno(self):
        return self.sock.fileno()

    def send(self, sql):
        assert not self.busy
        self.result = Result()
        self.busy = True
        body = sql.encode() + b"\0"
        try:
            self.sock.sendall(b"Q" + struct.pack("!i", len(body) + 4) + body)
        except OSError as e:
            raise ServerGone(str(e)) from e

    def wait(self, timeout=None):
        """Take in what has come; true once the query is done.

        Without a timeout wait until then, with one at most so many seconds.
        """
        while self.busy:
            if timeout is not None:
                ready, _, _ = select.select([self.sock], [], [], timeout)
                if not ready:
                    return False
            try:
                data = self.sock.recv(262144)
            except OSError as e:
                raise ServerGone(str(e)) from e
            if not data:
                message = self.result.message if self.result else None
                raise ServerGone(message or "connection closed")
            self.buf += data
            self._parse()
        return True

    def run(self, sql, timeout=60):
        """Run a query to its end."""
        self.send(sql)
        if not self.wait(timeout):
            raise TimeoutError(sql)
        return self.result

    def rows(self, sql, timeout=60):
        """The rows of a query that must not fail."""
        result = self.run(sql, timeout)
        if result.error:
            raise RuntimeError(f"{result.error} {result.message} in: {sql}")
        return result.rows

    def _parse(self):
        buf = self.buf
        pos = 0
        end = len(buf)
        while end - pos >= 5:
            length = int.from_bytes(buf[pos + 1:pos + 5], "big") + 1
            if end - pos < length:
                break
            self._message(buf[pos], buf[pos + 5:pos + length])
            pos += length
        del buf[:pos]

    def _message(self, kind, body):
        result = self.result
        if kind == 68:                                  # D, a row
            count = int.from_bytes(body[:2], "big")
            pos = 2
            row = []
            for _ in range(count):
                size = int.from_bytes(body[pos:pos + 4], "big", signed=True)
                pos += 4
                if size < 0:
                    row.append(None)
                else:
                    row.append(body[pos:pos + size].decode())
                    pos += size
            result.rows.append(tuple(row))
        elif kind == 67:                                # C, command complete
            result.tags.append(body[:-1].decode())
        elif kind == 69:                                # E, error
            fields = self._fields(body)
            result.error = fields.get("C")
            result.message = fields.get("M")
            result.detail = fields.get("D")
        elif kind == 78:                                # N, notice
            result.notices.append(self._fields(body).get("M"))
        elif kind == 90:                                # Z, ready
            self.status = chr(body[0])
            self.busy = False
        elif kind == 75:                                # K, our pid
            self.pid = int.from_bytes(body[:4], "big")

    @staticmethod
    def _fields(body):
        return {part[0:1].decode(): part[1:].decode(errors="replace")
                for part in bytes(body).split(b"\0") if part}

    def close(self):
        try:
            self.sock.sendall(b"X\0\0\0\4")
        except OSError:
            pass
        self.sock.close()
