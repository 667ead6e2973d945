/// What `sheaf repair` saved of a damaged library, and what it could not.
package struct RepairReport: Sendable, Codable {
  /// The new library.
  package let library: String
  package let accounts: Int
  package let documents: Int
  package let folders: Int
  package let versions: Int
  package let deleted: Int
  /// What is lost, or was put elsewhere, a line each.
  package let lost: [String]
  /// What `sheaf check` finds in the new library: nothing, unless the repair itself failed.
  package let problems: [String]

  package init(
    library: String, accounts: Int, documents: Int, folders: Int, versions: Int, deleted: Int, lost: [String],
    problems: [String]
  ) {
    self.library = library
    self.accounts = accounts
    self.documents = documents
    self.folders = folders
    self.versions = versions
    self.deleted = deleted
    self.lost = lost
    self.problems = problems
  }
}
