internal import SheafModel

/// The consistency rules of docs/FORMAT.md that `sheaf check` verifies by queries. Each query finds the rows that break
/// its rule.
enum CheckRules {
  static let library = "the library has an id"
  static let hashKey = "the order of names has a key"
  static let entryHash = "an entry lies where its name puts it"
  static let handle = "an account's handle is one"
  static let numberSetting = "a setting that is to be a number is one"
  static let textSetting = "a setting that is to be a text is one"

  /// Every rule by name: those of ``queries``, and those that SQL cannot express.
  static let names = queries.map(\.rule) + [library, hashKey, entryHash, handle, numberSetting, textSetting]

  static let queries: [(rule: String, sql: String)] =
    entries + inodes + items + versions + workingCopies + accounts + deleted + shares + events + replicas

  /// Whether a row's token has a character that no token has. Its length is in the tables' statements.
  static let hasForeignToken = "token GLOB '*[^A-Za-z0-9_-]*'"

  /// The condition of a name that no file can have.
  static func isNoName(_ column: String) -> String {
    """
    (length(\(column)) NOT BETWEEN 1 AND 255 OR instr(\(column), x'00') OR instr(\(column), x'2F')
      OR \(column) IN (x'2E', x'2E2E', CAST('.versions' AS BLOB)))
    """
  }

  /// Whether an inode's mode has other bits than `st_mode` has, or no type.
  static let hasForeignMode = "(mode NOT BETWEEN 0 AND 65535 OR \(hasNoType))"

  /// Whether an inode's mode has no type that a file can have.
  static let hasNoType = "mode & 61440 NOT IN (4096, 8192, 16384, 24576, 32768, 40960, 49152)"

  /// The condition of a number that no user and no group has: the highest one of 32 bits stands for none (chown(2)).
  static func isNoUser(_ column: String) -> String { "\(column) NOT BETWEEN 0 AND 4294967294" }

  /// The condition of a setting that is to be a number, and is none.
  static let isNoNumber = isNo(
    "integer",
    [
      "latestTime", "hashKey", "keepDeleted", "keepVersions", "thinned", "created", "clockDoubted", "chunksPacked",
      "chunksCompressed", "eventsBefore", "eventsTo", "itemsBefore", "cache", "purged", "change",
    ],
    each: [
      "keepDeleted", "keepVersions", "keepUnsent", "returning", "syncLimit", "linkEnds", "declined", "withdrawn",
      "movedByOthers", "rulesByOthers", "transferOffer",
    ])

  /// The condition of a setting that is to be a text, and is none.
  static let isNoText = isNo(
    "text",
    [
      "library", "publicAddress", "formerAddresses", "defaultAccount", "rapidSaves", "searchContents", "mounts",
      "readings", "transferring",
    ], each: ["device", "wipe", "syncPaused", "hubKeeps"])

  /// - Parameter prefixes: What settings of each account, item or inode begin with.
  private static func isNo(_ type: String, _ keys: [String], each prefixes: [String]) -> String {
    let some = prefixes.map { "key GLOB '\($0).*'" }
    return "typeof(value) <> '\(type)' AND (key IN ('\(keys.joined(separator: "', '"))') OR "
      + some.joined(separator: " OR ") + ")"
  }

  /// The condition of an event of no type that there is.
  static let hasNoEventType = "type NOT IN ('\(EventType.allCases.map(\.rawValue).joined(separator: "', '"))')"

  /// The condition of an inode with a size that has nothing of a size.
  static let hasForeignSize = "size <> 0 AND mode & 61440 NOT IN (32768, 40960)"

  /// Whether no tree is on its way to another account: the owners that rows of it name may differ until then.
  private static let atRest = "NOT EXISTS (SELECT 1 FROM settings WHERE key = '\(OwnerChange.setting)')"

  private static let entries: [(rule: String, sql: String)] = [
    (
      "an entry names an inode",
      "SELECT parent, ino FROM entries e WHERE NOT EXISTS (SELECT 1 FROM inodes WHERE ino = e.ino)"
    ),
    (
      "an entry lies in a folder that has a name",
      """
      SELECT e.parent, e.ino FROM entries e LEFT JOIN inodes p ON p.ino = e.parent
      WHERE p.ino IS NULL OR p.mode & 61440 <> 16384 OR p.nlink = 0
      """
    ),
    (
      "a name is one that a file can have",
      "SELECT parent, ino FROM entries WHERE \(isNoName("name"))"
    ),
    (
      "a folder has one name",
      """
      SELECT e.ino, count(*) FROM entries e JOIN inodes i ON i.ino = e.ino WHERE i.mode & 61440 = 16384
      GROUP BY e.ino HAVING count(*) > 1
      """
    ),
    (
      "an inode has one oldest name",
      "SELECT ino, count(*) FROM entries WHERE extra = 0 GROUP BY ino HAVING count(*) > 1"
    ),
  ]

  private static let workingCopies: [(rule: String, sql: String)] = [
    (
      "a working copy is of a regular file",
      """
      SELECT ino, author FROM working_copies w
      WHERE NOT EXISTS (SELECT 1 FROM inodes i WHERE i.ino = w.ino AND i.mode & 61440 = 32768)
      """
    ),
    (
      "a working copy's author is an account",
      "SELECT ino, author FROM working_copies w WHERE NOT EXISTS (SELECT 1 FROM accounts WHERE id = w.author)"
    ),
  ]

  private static let inodes: [(rule: String, sql: String)] = [
    (
      "a file's link count is its number of names",
      """
      SELECT i.ino, i.nlink FROM inodes i LEFT JOIN (SELECT ino, count(*) AS n FROM entries GROUP BY ino) e ON e.ino = i.ino
      WHERE i.mode & 61440 <> 16384 AND i.nlink <> coalesce(e.n, 0)
      """
    ),
    (
      "a folder's link count is two and its folders",
      """
      SELECT i.ino, i.nlink FROM inodes i LEFT JOIN (
        SELECT e.parent AS ino, count(*) AS n FROM entries e JOIN inodes c ON c.ino = e.ino
        WHERE c.mode & 61440 = 16384 GROUP BY e.parent) f ON f.ino = i.ino
      WHERE i.mode & 61440 = 16384 AND i.nlink > 0 AND i.nlink <> 2 + coalesce(f.n, 0)
      """
    ),
    (
      "a named inode's oldest name is an entry",
      """
      SELECT i.ino, i.parent FROM inodes i
      LEFT JOIN (
        SELECT ino, count(*) AS n, max(parent) AS parent, max(name) AS name FROM entries WHERE extra = 0 GROUP BY ino
      ) e ON e.ino = i.ino
      WHERE i.nlink > 0 AND i.parent > 0 AND (e.n IS NULL OR e.n = 1 AND (e.parent <> i.parent OR e.name <> i.name))
      """
    ),
    (
      "an inode without a name is among the deleted",
      "SELECT ino, nlink FROM inodes i WHERE (nlink = 0) <> EXISTS (SELECT 1 FROM deleted d WHERE d.ino = i.ino)"
    ),
    (
      "a folder leads up to an account's Documents",
      """
      WITH RECURSIVE reached (ino) AS (
        SELECT documents FROM accounts UNION
        SELECT e.ino FROM reached r JOIN entries e ON e.parent = r.ino JOIN inodes i ON i.ino = e.ino
        WHERE i.mode & 61440 = 16384)
      SELECT ino, parent FROM inodes WHERE mode & 61440 = 16384 AND nlink > 0 AND ino NOT IN (SELECT ino FROM reached)
      """
    ),
    (
      "an inode's owner is an account",
      "SELECT ino, owner FROM inodes i WHERE NOT EXISTS (SELECT 1 FROM accounts WHERE id = i.owner)"
    ),
    (
      "an inode belongs to its folder's owner",
      "SELECT i.ino, i.owner FROM inodes i JOIN inodes p ON p.ino = i.parent WHERE i.owner <> p.owner AND \(atRest)"
    ),
    (
      "a regular file has contents, and nothing else has",
      "SELECT ino, mode FROM inodes WHERE (mode & 61440 = 32768) <> (content IS NOT NULL)"
    ),
    (
      "a symbolic link has a target as long as its size, and nothing else has one",
      """
      SELECT ino, mode FROM inodes WHERE (mode & 61440 = 40960) <> (target IS NOT NULL)
        OR target IS NOT NULL AND length(target) <> size
      """
    ),
    (
      "what has neither contents nor a target has no size",
      "SELECT ino, size FROM inodes WHERE \(hasForeignSize)"
    ),
    (
      "an inode's mode is a type and permission bits",
      "SELECT ino, mode FROM inodes WHERE \(hasForeignMode)"
    ),
    (
      "an inode's user and group are from 0 to 4294967294",
      """
      SELECT ino, CASE WHEN \(isNoUser("uid")) THEN uid ELSE gid END FROM inodes
      WHERE \(isNoUser("uid")) OR \(isNoUser("gid"))
      """
    ),
    (
      "the last folder of an inode without a name is an inode",
      """
      SELECT ino, parent FROM inodes i WHERE nlink = 0 AND parent <> 0
        AND NOT EXISTS (SELECT 1 FROM inodes p WHERE p.ino = i.parent)
      """
    ),
    (
      "an attribute belongs to an inode",
      "SELECT ino, 0 FROM xattrs x WHERE NOT EXISTS (SELECT 1 FROM inodes WHERE ino = x.ino)"
    ),
    (
      "an attribute's name has a namespace and is not a computed one",
      """
      SELECT ino, length(name) FROM xattrs WHERE length(name) > 255 OR instr(name, x'00')
        OR instr(substr(name, 2), x'2E') = 0 OR substr(name, 1, 11) = CAST('user.sheaf.' AS BLOB)
      """
    ),
  ]

  private static let items: [(rule: String, sql: String)] = [
    (
      "an inode's item exists",
      "SELECT ino, item FROM inodes i WHERE item IS NOT NULL AND NOT EXISTS (SELECT 1 FROM items WHERE id = i.item)"
    ),
    ("an item is an inode", "SELECT id, kind FROM items t WHERE NOT EXISTS (SELECT 1 FROM inodes WHERE item = t.id)"),
    (
      "documents, folders and symbolic links are items, and nothing else is",
      "SELECT ino, mode FROM inodes WHERE (mode & 61440 IN (32768, 16384, 40960)) <> (item IS NOT NULL)"
    ),
    (
      "an item's kind is its inode's",
      """
      SELECT i.ino, t.kind FROM inodes i JOIN items t ON t.id = i.item
      WHERE t.kind <> CASE i.mode & 61440 WHEN 32768 THEN 1 WHEN 16384 THEN 2 WHEN 40960 THEN 3 ELSE 0 END
      """
    ),
    (
      "an item's creator is an account",
      "SELECT id, creator FROM items t WHERE NOT EXISTS (SELECT 1 FROM accounts WHERE id = t.creator)"
    ),
    (
      "an item's owner is an account",
      "SELECT id, owner FROM items t WHERE NOT EXISTS (SELECT 1 FROM accounts WHERE id = t.owner)"
    ),
    (
      "an item's owner is its inode's",
      "SELECT i.ino, t.id FROM inodes i JOIN items t ON t.id = i.item WHERE t.owner <> i.owner AND \(atRest)"
    ),
  ]

  private static let versions: [(rule: String, sql: String)] = [
    (
      "a version belongs to an item",
      "SELECT item, number FROM versions v WHERE NOT EXISTS (SELECT 1 FROM items WHERE id = v.item)"
    ),
    (
      "an item's current version exists",
      """
      SELECT id, version FROM items t WHERE version > 0
        AND NOT EXISTS (SELECT 1 FROM versions WHERE item = t.id AND number = t.version)
      """
    ),
    (
      "an item without a current version has none",
      "SELECT id, version FROM items t WHERE version = 0 AND EXISTS (SELECT 1 FROM versions WHERE item = t.id)"
    ),
    (
      "a document's contents are those of its current version",
      """
      SELECT i.ino, t.version FROM inodes i JOIN items t ON t.id = i.item
        JOIN versions v ON v.item = t.id AND v.number = t.version WHERE v.content <> i.content
      """
    ),
    (
      "no version is above the item's last",
      """
      SELECT v.item, v.number FROM versions v JOIN items t ON t.id = v.item WHERE v.number > t.last_version
        UNION ALL SELECT id, last_version FROM items WHERE last_version < max(version, 0) OR version < 0
      """
    ),
    (
      "only a current version is open",
      "SELECT v.item, v.number FROM versions v JOIN items t ON t.id = v.item WHERE v.open = 1 AND v.number <> t.version"
    ),
    ("a version's base is an earlier one", "SELECT item, number FROM versions WHERE base NOT BETWEEN 1 AND number - 1"),
    (
      "a version's author is an account",
      "SELECT item, number FROM versions v WHERE NOT EXISTS (SELECT 1 FROM accounts WHERE id = v.author)"
    ),
    (
      "a label is unique in its document",
      "SELECT item, count(*) FROM versions WHERE label IS NOT NULL GROUP BY item, label HAVING count(*) > 1"
    ),
  ]

  private static let accounts: [(rule: String, sql: String)] = [
    (
      "an account's Documents is a folder of its own",
      """
      SELECT id, documents FROM accounts a WHERE NOT EXISTS (
        SELECT 1 FROM inodes WHERE ino = a.documents AND parent = 0 AND owner = a.id AND mode & 61440 = 16384)
      """
    ),
    (
      "only an account's Documents has no folder above it",
      "SELECT ino, owner FROM inodes i WHERE parent = 0 AND NOT EXISTS (SELECT 1 FROM accounts WHERE documents = i.ino)"
    ),
    (
      "an account's person is an account",
      """
      SELECT id, person FROM accounts a WHERE person IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM accounts p WHERE p.id = a.person)
      """
    ),
  ]

  private static let replicas: [(rule: String, sql: String)] =
    [
      (
        "a replica is of an account",
        "SELECT account, read FROM replicas r WHERE NOT EXISTS (SELECT 1 FROM accounts WHERE id = r.account)"
      ),
      (
        "a replica's reader is an account",
        """
        SELECT account, reader FROM replicas r WHERE reader IS NOT NULL
          AND NOT EXISTS (SELECT 1 FROM accounts WHERE id = r.reader)
        """
      ),
    ]
    + [
      "replica_items", "replica_names", "replica_steps", "replica_sends", "replica_shares", "replica_histories",
      "replica_requests",
    ].map { ("\($0): a row is of a replica", rows(of: $0, without: "replicas", key: "account")) }
    + ["replica_logs", "replica_events", "replica_comments"]
    .map { ("\($0): a row is of an account", rows(of: $0, without: "accounts", key: "id")) }

  /// The accounts of a table's rows that are not in another one, and how many rows each has.
  private static func rows(of table: String, without other: String, key: String) -> String {
    "SELECT account, count(*) FROM \(table) r WHERE NOT EXISTS (SELECT 1 FROM \(other) o WHERE o.\(key) = r.account)"
      + " GROUP BY account"
  }

  private static let deleted: [(rule: String, sql: String)] = [
    (
      "what is deleted is an inode",
      "SELECT ino, parent FROM deleted d WHERE NOT EXISTS (SELECT 1 FROM inodes WHERE ino = d.ino)"
    ),
    (
      "what is deleted was in a folder that can come back",
      """
      SELECT ino, parent FROM deleted d
      WHERE NOT EXISTS (SELECT 1 FROM inodes WHERE ino = d.parent AND mode & 61440 = 16384)
      """
    ),
    (
      "a deleted name is one that a file can have",
      "SELECT ino, parent FROM deleted WHERE \(isNoName("name"))"
    ),
    (
      "who deleted is an account",
      "SELECT ino, actor FROM deleted d WHERE NOT EXISTS (SELECT 1 FROM accounts WHERE id = d.actor)"
    ),
  ]

  private static let shares: [(rule: String, sql: String)] = [
    (
      "a share is of an item",
      "SELECT item, active FROM shares s WHERE NOT EXISTS (SELECT 1 FROM items WHERE id = s.item AND kind IN (1, 2))"
    ),
    (
      "a share has one owner, whose item it is",
      """
      SELECT s.item, t.owner FROM shares s JOIN items t ON t.id = s.item
      WHERE (SELECT count(*) FROM participants WHERE share = s.item AND role = 1) <> 1
        OR \(atRest) AND NOT EXISTS (
          SELECT 1 FROM participants p JOIN accounts a ON a.id = t.owner
          WHERE p.share = s.item AND p.role = 1 AND p.account = coalesce(a.person, a.id) AND p.acceptance = 2)
      """
    ),
    (
      "a share that goes on lies in no other",
      """
      WITH RECURSIVE above (item, ino) AS (
        SELECT s.item, i.parent FROM shares s JOIN inodes i ON i.item = s.item WHERE s.active = 1 AND i.nlink > 0 UNION
        SELECT a.item, i.parent FROM above a JOIN inodes i ON i.ino = a.ino)
      SELECT a.item, s.item FROM above a JOIN inodes i ON i.ino = a.ino JOIN shares s ON s.item = i.item
      WHERE s.active = 1
      """
    ),
    (
      "a participant is in a share",
      "SELECT share, account FROM participants p WHERE NOT EXISTS (SELECT 1 FROM shares WHERE item = p.share)"
    ),
    (
      "a one-time link is of a share, by one of its participants",
      """
      SELECT share, inviter FROM one_time_links l
      WHERE NOT EXISTS (SELECT 1 FROM participants WHERE share = l.share AND account = l.inviter)
      """
    ),
    (
      "who asks for access is an account, and asks for a share",
      """
      SELECT share, account FROM access_requests r WHERE NOT EXISTS (SELECT 1 FROM accounts WHERE id = r.account)
        OR NOT EXISTS (SELECT 1 FROM shares WHERE item = r.share)
      """
    ),
    (
      "a participant is an account",
      "SELECT share, account FROM participants p WHERE NOT EXISTS (SELECT 1 FROM accounts WHERE id = p.account)"
    ),
    (
      "a name that somebody gave what is shared with them is one",
      "SELECT share, account FROM participants WHERE name IS NOT NULL AND \(isNoName("name"))"
    ),
    (
      "a token has characters of base64url alone",
      """
      SELECT item, 0 FROM shares WHERE \(hasForeignToken)
        UNION ALL SELECT share, inviter FROM one_time_links WHERE \(hasForeignToken)
      """
    ),
  ]

  private static let events: [(rule: String, sql: String)] = [
    (
      "an event's actor and owner are accounts",
      """
      SELECT sequence, actor FROM events e WHERE NOT EXISTS (SELECT 1 FROM accounts WHERE id = e.actor)
        OR NOT EXISTS (SELECT 1 FROM accounts WHERE id = e.owner)
      """
    ),
    (
      "an event has an id and a JSON object",
      """
      SELECT sequence, item FROM events
      WHERE length(uuid) <> 16 OR NOT json_valid(data) OR substr(data, 1, 1) <> '{'
      """
    ),
    (
      "an event's number is above those that retention dropped",
      """
      SELECT sequence, item FROM events
      WHERE sequence <= coalesce((SELECT value FROM settings WHERE key = 'eventsBefore'), 0)
      """
    ),
    (
      "an event that is still open is about an item",
      "SELECT id, item FROM pending_events p WHERE NOT EXISTS (SELECT 1 FROM items WHERE id = p.item)"
    ),
    (
      "an event that is still open has an actor, an owner, an id and a JSON object",
      """
      SELECT id, item FROM pending_events p WHERE NOT EXISTS (SELECT 1 FROM accounts WHERE id = p.actor)
        OR NOT EXISTS (SELECT 1 FROM accounts WHERE id = p.owner)
        OR length(uuid) <> 16 OR NOT json_valid(data) OR substr(data, 1, 1) <> '{'
      """
    ),
    (
      "an event has a type",
      """
      SELECT sequence, item FROM events WHERE \(hasNoEventType)
      UNION ALL SELECT id, item FROM pending_events WHERE \(hasNoEventType)
      UNION ALL SELECT id, item FROM waiting_events WHERE \(hasNoEventType)
      """
    ),
    (
      "a former name is one, and somebody gave the next",
      """
      SELECT item, parent FROM past_names p WHERE \(isNoName("name"))
        OR NOT EXISTS (SELECT 1 FROM accounts WHERE id = p.actor)
      """
    ),
    (
      "a former name is of an item",
      "SELECT item, parent FROM past_names p WHERE NOT EXISTS (SELECT 1 FROM items WHERE id = p.item)"
    ),
    (
      "an event that the hub does not have yet has an actor and an owner",
      """
      SELECT id, actor FROM waiting_events w WHERE NOT EXISTS (SELECT 1 FROM accounts WHERE id = w.actor)
        OR NOT EXISTS (SELECT 1 FROM accounts WHERE id = w.owner)
      """
    ),
    (
      "an event that the hub does not have yet has an id and a JSON object",
      """
      SELECT id, item FROM waiting_events
      WHERE length(uuid) <> 16 OR NOT json_valid(data) OR substr(data, 1, 1) <> '{'
      """
    ),
    (
      "a webhook is of an account and has a list of types",
      """
      SELECT id, account FROM webhooks w WHERE NOT EXISTS (SELECT 1 FROM accounts WHERE id = w.account)
        OR NOT json_valid(types) OR substr(types, 1, 1) <> '['
      """
    ),
  ]
}
