/// The file format, which docs/FORMAT.md describes table by table.
enum Schema {
  /// `application_id` of a library: "SHEF".
  static let applicationID: Int32 = 0x5348_4546

  /// The `user_version` that this program writes; one more than the number of older formats.
  static let version: Int32 = 8

  /// The statements that bring a file from each `user_version` to the next; the first makes a new library.
  static let migrations: [String] = [
    versionOne, versionTwo, versionThree, versionFour, versionFive, versionSix, versionSeven, versionEight,
  ]

  private static let versionOne = """
    CREATE TABLE settings (
      key TEXT PRIMARY KEY NOT NULL,
      value ANY NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE accounts (
      id INTEGER PRIMARY KEY,
      handle TEXT NOT NULL UNIQUE,
      name TEXT NOT NULL,
      created INTEGER NOT NULL,
      documents INTEGER NOT NULL UNIQUE
    ) STRICT;

    CREATE TABLE items (
      id INTEGER PRIMARY KEY,
      uuid BLOB NOT NULL UNIQUE CHECK (length(uuid) = 16),
      kind INTEGER NOT NULL CHECK (kind IN (1, 2, 3)),
      owner INTEGER NOT NULL REFERENCES accounts (id),
      created INTEGER NOT NULL,
      version INTEGER NOT NULL DEFAULT 0,
      last_version INTEGER NOT NULL DEFAULT 0,
      conflict INTEGER,
      quiet INTEGER NOT NULL DEFAULT 0 CHECK (quiet IN (0, 1)),
      CHECK (version <= last_version)
    ) STRICT;

    CREATE TABLE inodes (
      ino INTEGER PRIMARY KEY,
      item INTEGER UNIQUE REFERENCES items (id),
      owner INTEGER NOT NULL REFERENCES accounts (id),
      parent INTEGER NOT NULL,
      name BLOB NOT NULL,
      mode INTEGER NOT NULL,
      nlink INTEGER NOT NULL,
      uid INTEGER NOT NULL,
      gid INTEGER NOT NULL,
      rdev INTEGER NOT NULL DEFAULT 0,
      size INTEGER NOT NULL DEFAULT 0,
      atime INTEGER NOT NULL,
      mtime INTEGER NOT NULL,
      ctime INTEGER NOT NULL,
      content BLOB,
      target BLOB
    ) STRICT;

    CREATE TABLE entries (
      parent INTEGER NOT NULL,
      hash INTEGER NOT NULL,
      name BLOB NOT NULL,
      ino INTEGER NOT NULL REFERENCES inodes (ino),
      extra INTEGER NOT NULL DEFAULT 0,
      PRIMARY KEY (parent, hash, name)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX entries_extra ON entries (ino) WHERE extra = 1;

    CREATE TABLE xattrs (
      ino INTEGER NOT NULL REFERENCES inodes (ino),
      name BLOB NOT NULL,
      value BLOB NOT NULL,
      PRIMARY KEY (ino, name)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE versions (
      item INTEGER NOT NULL REFERENCES items (id),
      number INTEGER NOT NULL CHECK (number > 0),
      time INTEGER NOT NULL,
      author INTEGER NOT NULL REFERENCES accounts (id),
      size INTEGER NOT NULL CHECK (size >= 0),
      cause INTEGER NOT NULL CHECK (cause BETWEEN 1 AND 6),
      base INTEGER,
      label TEXT,
      content BLOB NOT NULL,
      open INTEGER NOT NULL DEFAULT 0 CHECK (open IN (0, 1)),
      PRIMARY KEY (item, number)
    ) STRICT, WITHOUT ROWID;
    CREATE UNIQUE INDEX versions_label ON versions (item, label) WHERE label IS NOT NULL;
    CREATE INDEX versions_open ON versions (item) WHERE open = 1;

    CREATE TABLE chunks (
      id INTEGER PRIMARY KEY,
      hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
      size INTEGER NOT NULL,
      encoding INTEGER NOT NULL DEFAULT 0,
      data BLOB NOT NULL
    ) STRICT;

    CREATE TABLE deleted (
      ino INTEGER PRIMARY KEY REFERENCES inodes (ino),
      parent INTEGER NOT NULL,
      name BLOB NOT NULL,
      time INTEGER NOT NULL,
      actor INTEGER NOT NULL REFERENCES accounts (id)
    ) STRICT;
    CREATE INDEX deleted_parent ON deleted (parent, name);
    CREATE INDEX deleted_time ON deleted (time);

    CREATE TABLE shares (
      id INTEGER PRIMARY KEY,
      uuid BLOB NOT NULL UNIQUE CHECK (length(uuid) = 16),
      item INTEGER NOT NULL UNIQUE REFERENCES items (id),
      token BLOB NOT NULL UNIQUE CHECK (length(token) >= 16),
      title TEXT NOT NULL,
      public_permission INTEGER NOT NULL DEFAULT 0 CHECK (public_permission IN (0, 1, 2)),
      allow_invites INTEGER NOT NULL DEFAULT 0,
      allow_requests INTEGER NOT NULL DEFAULT 0,
      active INTEGER NOT NULL DEFAULT 1,
      created INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE participants (
      share INTEGER NOT NULL REFERENCES shares (id),
      account INTEGER NOT NULL REFERENCES accounts (id),
      role INTEGER NOT NULL CHECK (role BETWEEN 1 AND 4),
      permission INTEGER NOT NULL CHECK (permission IN (1, 2)),
      acceptance INTEGER NOT NULL CHECK (acceptance IN (1, 2, 3)),
      name BLOB,
      since INTEGER NOT NULL,
      PRIMARY KEY (share, account)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE events (
      sequence INTEGER PRIMARY KEY,
      uuid BLOB NOT NULL,
      type TEXT NOT NULL,
      time INTEGER NOT NULL,
      actor INTEGER NOT NULL REFERENCES accounts (id),
      item INTEGER NOT NULL,
      data TEXT NOT NULL
    ) STRICT;

    CREATE TABLE pending_events (
      id INTEGER PRIMARY KEY,
      uuid BLOB NOT NULL,
      type TEXT NOT NULL,
      time INTEGER NOT NULL,
      actor INTEGER NOT NULL REFERENCES accounts (id),
      item INTEGER NOT NULL,
      data TEXT NOT NULL,
      process INTEGER NOT NULL
    ) STRICT;
    """

  /// Sharing, events of several people, and webhooks. Before, nobody could share, so there are no shares to keep.
  private static let versionTwo = """
    CREATE TABLE former AS SELECT * FROM accounts;
    DROP TABLE accounts;
    CREATE TABLE accounts (
      id INTEGER PRIMARY KEY,
      handle TEXT NOT NULL UNIQUE,
      name TEXT NOT NULL,
      created INTEGER NOT NULL,
      documents INTEGER NOT NULL UNIQUE,
      removed INTEGER,
      noticed INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    INSERT INTO accounts (id, handle, name, created, documents)
      SELECT id, handle, name, created, documents FROM former;
    DROP TABLE former;

    CREATE TABLE former AS SELECT * FROM items;
    DROP TABLE items;
    CREATE TABLE items (
      id INTEGER PRIMARY KEY,
      uuid BLOB NOT NULL UNIQUE CHECK (length(uuid) = 16),
      kind INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 3),
      owner INTEGER NOT NULL REFERENCES accounts (id),
      creator INTEGER NOT NULL REFERENCES accounts (id),
      created INTEGER NOT NULL,
      entered INTEGER,
      version INTEGER NOT NULL DEFAULT 0,
      last_version INTEGER NOT NULL DEFAULT 0,
      conflict INTEGER,
      quiet INTEGER NOT NULL DEFAULT 0 CHECK (quiet IN (0, 1)),
      CHECK (version <= last_version)
    ) STRICT;
    INSERT INTO items (id, uuid, kind, owner, creator, created, version, last_version, conflict, quiet)
      SELECT id, uuid, kind, owner, owner, created, version, last_version, conflict, quiet FROM former;
    DROP TABLE former;

    CREATE TABLE former AS SELECT * FROM events;
    DROP TABLE events;
    CREATE TABLE events (
      sequence INTEGER PRIMARY KEY,
      uuid BLOB NOT NULL,
      type TEXT NOT NULL,
      time INTEGER NOT NULL,
      actor INTEGER NOT NULL REFERENCES accounts (id),
      owner INTEGER NOT NULL REFERENCES accounts (id),
      item INTEGER NOT NULL,
      data TEXT NOT NULL,
      share INTEGER,
      depth INTEGER NOT NULL DEFAULT 0,
      previous_share INTEGER,
      previous_depth INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    INSERT INTO events (sequence, uuid, type, time, actor, owner, item, data)
      SELECT sequence, uuid, type, time, actor, actor, item, data FROM former;
    DROP TABLE former;

    CREATE TABLE former AS SELECT * FROM pending_events;
    DROP TABLE pending_events;
    CREATE TABLE pending_events (
      id INTEGER PRIMARY KEY,
      uuid BLOB NOT NULL,
      type TEXT NOT NULL,
      time INTEGER NOT NULL,
      actor INTEGER NOT NULL REFERENCES accounts (id),
      owner INTEGER NOT NULL REFERENCES accounts (id),
      item INTEGER NOT NULL,
      data TEXT NOT NULL,
      share INTEGER,
      depth INTEGER NOT NULL DEFAULT 0,
      previous_share INTEGER,
      previous_depth INTEGER NOT NULL DEFAULT 0,
      process INTEGER NOT NULL
    ) STRICT;
    INSERT INTO pending_events (id, uuid, type, time, actor, owner, item, data, process)
      SELECT id, uuid, type, time, actor, actor, item, data, process FROM former;
    DROP TABLE former;

    DROP TABLE shares;
    DROP TABLE participants;
    CREATE TABLE shares (
      item INTEGER PRIMARY KEY REFERENCES items (id),
      uuid BLOB NOT NULL UNIQUE CHECK (length(uuid) = 16),
      token TEXT NOT NULL UNIQUE CHECK (length(token) >= 22),
      title TEXT NOT NULL CHECK (length(title) BETWEEN 1 AND 255),
      public_permission INTEGER NOT NULL DEFAULT 0 CHECK (public_permission IN (0, 1, 2)),
      permission INTEGER NOT NULL DEFAULT 2 CHECK (permission IN (1, 2)),
      allow_invites INTEGER NOT NULL DEFAULT 0 CHECK (allow_invites IN (0, 1)),
      allow_requests INTEGER NOT NULL DEFAULT 0 CHECK (allow_requests IN (0, 1)),
      active INTEGER NOT NULL DEFAULT 1 CHECK (active IN (0, 1)),
      created INTEGER NOT NULL,
      since INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE participants (
      share INTEGER NOT NULL REFERENCES shares (item),
      account INTEGER NOT NULL REFERENCES accounts (id),
      role INTEGER NOT NULL CHECK (role BETWEEN 1 AND 4),
      permission INTEGER NOT NULL CHECK (permission IN (1, 2)),
      acceptance INTEGER NOT NULL CHECK (acceptance IN (1, 2, 3)),
      name BLOB,
      since INTEGER NOT NULL,
      joined INTEGER,
      ended INTEGER,
      PRIMARY KEY (share, account)
    ) STRICT, WITHOUT ROWID;

    CREATE INDEX participants_account ON participants (account);

    CREATE TABLE one_time_links (
      token TEXT PRIMARY KEY NOT NULL CHECK (length(token) >= 22),
      share INTEGER NOT NULL REFERENCES shares (item),
      permission INTEGER NOT NULL CHECK (permission IN (1, 2)),
      inviter INTEGER NOT NULL REFERENCES accounts (id),
      expires INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE access_requests (
      share INTEGER NOT NULL REFERENCES shares (item),
      account INTEGER NOT NULL REFERENCES accounts (id),
      time INTEGER NOT NULL,
      blocked INTEGER NOT NULL DEFAULT 0 CHECK (blocked IN (0, 1)),
      PRIMARY KEY (share, account)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE webhooks (
      id INTEGER PRIMARY KEY,
      uuid BLOB NOT NULL UNIQUE CHECK (length(uuid) = 16),
      account INTEGER NOT NULL REFERENCES accounts (id),
      url TEXT NOT NULL,
      secret TEXT NOT NULL,
      types TEXT NOT NULL,
      created INTEGER NOT NULL
    ) STRICT;
    """

  /// Old history in few bytes.
  private static let versionThree = """
    CREATE TABLE packs (
      id INTEGER PRIMARY KEY,
      base BLOB NOT NULL,
      chunks BLOB NOT NULL,
      data BLOB NOT NULL
    ) STRICT;
    """

  /// Saves that are promised before they are stored.
  private static let versionFour = """
    CREATE TABLE working_copies (
      ino INTEGER PRIMARY KEY REFERENCES inodes (ino),
      author INTEGER NOT NULL REFERENCES accounts (id),
      time INTEGER NOT NULL,
      cause INTEGER NOT NULL CHECK (cause BETWEEN 1 AND 6),
      writes BLOB NOT NULL
    ) STRICT;
    """

  /// Folders as they were. Of names before, nothing is known but what was deleted.
  private static let versionFive = """
    ALTER TABLE entries ADD COLUMN since INTEGER NOT NULL DEFAULT 0;

    CREATE TABLE past_names (
      parent INTEGER NOT NULL,
      name BLOB NOT NULL,
      until INTEGER NOT NULL,
      item INTEGER NOT NULL,
      since INTEGER NOT NULL,
      actor INTEGER NOT NULL REFERENCES accounts (id),
      PRIMARY KEY (parent, name, until, item)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX past_names_item ON past_names (item, until);

    INSERT INTO past_names (parent, name, until, item, since, actor)
      SELECT d.parent, d.name, d.time, i.item, 0, d.actor FROM deleted d JOIN inodes i ON i.ino = d.ino
      WHERE i.item IS NOT NULL;
    """

  /// Replicas of accounts that a hub knows.
  private static let versionSix = """
    CREATE TABLE replicas (
      account INTEGER PRIMARY KEY REFERENCES accounts (id),
      zone BLOB NOT NULL CHECK (length(zone) = 16),
      seed BLOB NOT NULL CHECK (length(seed) = 16),
      token TEXT,
      read INTEGER NOT NULL DEFAULT 0,
      serial INTEGER NOT NULL DEFAULT 0,
      confirmed INTEGER NOT NULL DEFAULT 0,
      rereads INTEGER NOT NULL DEFAULT 1 CHECK (rereads IN (0, 1))
    ) STRICT;

    CREATE TABLE replica_items (
      account INTEGER NOT NULL REFERENCES replicas (account),
      item BLOB NOT NULL CHECK (length(item) = 16),
      base TEXT,
      news TEXT,
      news_number INTEGER,
      mark TEXT,
      alias BLOB CHECK (length(alias) = 16),
      PRIMARY KEY (account, item)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX replica_items_news ON replica_items (account, news_number) WHERE news_number IS NOT NULL;

    CREATE TABLE replica_names (
      account INTEGER NOT NULL REFERENCES replicas (account),
      parent BLOB NOT NULL CHECK (length(parent) = 16),
      name BLOB NOT NULL,
      item BLOB NOT NULL CHECK (length(item) = 16),
      PRIMARY KEY (account, parent, name)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE replica_changes (
      account INTEGER NOT NULL,
      item BLOB NOT NULL CHECK (length(item) = 16),
      PRIMARY KEY (account, item)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE replica_steps (
      account INTEGER NOT NULL REFERENCES replicas (account),
      number INTEGER NOT NULL,
      step TEXT NOT NULL,
      PRIMARY KEY (account, number)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE replica_sends (
      account INTEGER NOT NULL REFERENCES replicas (account),
      serial INTEGER NOT NULL,
      first INTEGER NOT NULL,
      send TEXT NOT NULL,
      PRIMARY KEY (account, serial)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE replica_versions (
      item INTEGER NOT NULL,
      number INTEGER NOT NULL,
      uuid BLOB NOT NULL CHECK (length(uuid) = 16),
      sent INTEGER NOT NULL CHECK (sent IN (0, 1)),
      PRIMARY KEY (item, number)
    ) STRICT, WITHOUT ROWID;
    """

  /// Shares at a hub, and histories that replicas compare with their hubs.
  private static let versionSeven = """
    ALTER TABLE accounts ADD COLUMN hub TEXT;
    ALTER TABLE accounts ADD COLUMN shown TEXT;
    ALTER TABLE accounts ADD COLUMN person INTEGER REFERENCES accounts (id);

    ALTER TABLE shares ADD COLUMN url TEXT;

    ALTER TABLE replicas ADD COLUMN reader INTEGER REFERENCES accounts (id);
    ALTER TABLE replicas ADD COLUMN hub TEXT;

    CREATE TABLE replica_shares (
      account INTEGER NOT NULL REFERENCES replicas (account),
      share BLOB NOT NULL CHECK (length(share) = 16),
      entry TEXT NOT NULL,
      state TEXT,
      leaving INTEGER NOT NULL DEFAULT 0 CHECK (leaving IN (0, 1)),
      time INTEGER NOT NULL,
      PRIMARY KEY (account, share)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE replica_histories (
      account INTEGER NOT NULL REFERENCES replicas (account),
      item BLOB NOT NULL CHECK (length(item) = 16),
      told INTEGER NOT NULL,
      after INTEGER NOT NULL,
      whole INTEGER NOT NULL CHECK (whole IN (0, 1)),
      state TEXT,
      PRIMARY KEY (account, item)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX replica_histories_told ON replica_histories (account, told);

    CREATE TABLE replica_requests (
      account INTEGER NOT NULL REFERENCES replicas (account),
      item BLOB NOT NULL CHECK (length(item) = 16),
      version BLOB NOT NULL CHECK (length(version) IN (0, 16)),
      label TEXT,
      PRIMARY KEY (account, item, version)
    ) STRICT, WITHOUT ROWID;

    INSERT INTO replica_histories (account, item, told, after, whole)
      SELECT account, item, 0, 0, 1 FROM replica_items WHERE base IS NOT NULL;
    """

  /// Contents that stay at a hub until somebody needs them, and the logs of connected accounts at their hubs.
  private static let versionEight = """
    CREATE TABLE replica_logs (
      account INTEGER NOT NULL REFERENCES accounts (id),
      log BLOB NOT NULL CHECK (length(log) = 16),
      share INTEGER NOT NULL CHECK (share IN (0, 1)),
      number INTEGER NOT NULL,
      token TEXT,
      past INTEGER,
      since INTEGER NOT NULL,
      cleared INTEGER NOT NULL,
      read INTEGER NOT NULL,
      PRIMARY KEY (account, log)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE replica_events (
      sequence INTEGER PRIMARY KEY,
      account INTEGER NOT NULL REFERENCES accounts (id),
      log BLOB NOT NULL CHECK (length(log) = 16),
      number INTEGER NOT NULL,
      uuid BLOB NOT NULL CHECK (length(uuid) = 16),
      type TEXT NOT NULL,
      time INTEGER NOT NULL,
      subject BLOB NOT NULL CHECK (length(subject) = 16),
      share BLOB CHECK (length(share) = 16),
      past INTEGER NOT NULL CHECK (past IN (0, 1)),
      repeated INTEGER NOT NULL CHECK (repeated IN (0, 1)),
      event TEXT NOT NULL
    ) STRICT;
    CREATE INDEX replica_events_number ON replica_events (account, log, number);
    CREATE INDEX replica_events_uuid ON replica_events (uuid);
    CREATE INDEX replica_events_subject ON replica_events (subject);
    CREATE INDEX replica_events_share ON replica_events (share) WHERE share IS NOT NULL;

    CREATE TABLE waiting_events (
      id INTEGER PRIMARY KEY,
      uuid BLOB NOT NULL,
      type TEXT NOT NULL,
      time INTEGER NOT NULL,
      actor INTEGER NOT NULL REFERENCES accounts (id),
      owner INTEGER NOT NULL REFERENCES accounts (id),
      item INTEGER NOT NULL,
      data TEXT NOT NULL,
      share INTEGER,
      depth INTEGER NOT NULL DEFAULT 0,
      previous_share INTEGER,
      previous_depth INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX waiting_events_owner ON waiting_events (owner);
    CREATE INDEX waiting_events_item ON waiting_events (item);

    CREATE TABLE replica_comments (
      account INTEGER NOT NULL REFERENCES accounts (id),
      id BLOB NOT NULL CHECK (length(id) = 16),
      item BLOB NOT NULL CHECK (length(item) = 16),
      time INTEGER NOT NULL,
      text TEXT NOT NULL,
      PRIMARY KEY (account, id)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE absent_contents (
      id INTEGER PRIMARY KEY CHECK (id >= 4611686018427387904),
      item INTEGER NOT NULL,
      version BLOB NOT NULL CHECK (length(version) = 16),
      size INTEGER NOT NULL CHECK (size > 0)
    ) STRICT;
    CREATE INDEX absent_contents_item ON absent_contents (item);

    CREATE TABLE kept_contents (
      item INTEGER PRIMARY KEY,
      keep INTEGER NOT NULL CHECK (keep IN (0, 1))
    ) STRICT;

    ALTER TABLE replica_versions ADD COLUMN acknowledged INTEGER;
    """
}
