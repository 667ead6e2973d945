package import SheafHubStore

extension Hub {
  /// Checks every row.
  ///
  /// - Returns: one line for each finding.
  package func check() async throws -> [String] { try await accounts.check() + Zone.check(database) }

  /// Makes a copy of a hub's store one that begins an epoch, so that machines notice when it takes the first one's
  /// place, and closes it. Nobody's session goes on in a copy.
  package static func beginEpoch(inCopy database: any Database) async throws {
    try await database.write { connection in
      try connection.execute("DELETE FROM sessions")
      try connection.execute("DELETE FROM secrets")
      try Zone.beginEpochs(in: &connection)
    }
    await database.close()
  }
}
