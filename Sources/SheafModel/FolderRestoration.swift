/// Asks for a folder as it was.
package struct FolderRestoreRequest: Hashable, Sendable, Codable {
  package let time: Timestamp
  /// The account whose actions since then alone are undone; nil for everybody's.
  package let by: AccountHandle?
  /// The end of the span of time whose actions are undone, itself included, if they are one person's; nil for none.
  package let until: Timestamp?
  /// Whether only to say what would be done; nil for false.
  package let dryRun: Bool?

  package init(time: Timestamp, by: AccountHandle? = nil, until: Timestamp? = nil, dryRun: Bool? = nil) {
    self.time = time
    self.by = by
    self.until = until
    self.dryRun = dryRun
  }
}

/// The steps that a restoration of a folder took, or would take.
package struct FolderRestoration: Hashable, Sendable, Codable {
  /// One thing that is done, or left alone.
  package struct Step: Hashable, Sendable, Codable {
    package let action: Action
    /// Where the item is; where it comes back to, of one that is recovered.
    package let path: String
    /// Where the item goes, of one that is moved.
    @OrNull package var to: String?
    /// The version whose contents come back, of a document that is restored; 0 for empty ones, before its first.
    @OrNull package var version: Int64?
    /// Why the item is left alone.
    @OrNull package var reason: String?

    package init(
      _ action: Action, _ path: String, to: String? = nil, version: Int64? = nil, reason: String? = nil
    ) {
      self.action = action
      self.path = path
      self.to = to
      self.version = version
      self.reason = reason
    }
  }

  package enum Action: String, Sendable, Codable, CaseIterable {
    /// It is deleted, and can be recovered.
    case delete
    /// It gets another name or folder.
    case move
    /// It was deleted, and comes back.
    case recover
    /// Its contents become those of an earlier version, as a new one.
    case restore
    /// It is left as it is.
    case leave
  }

  /// The moment as of which the folder is.
  package let time: Timestamp
  /// The moment before: restoring that undoes this. Nil where nothing was done.
  @OrNull package var before: Timestamp?
  package let steps: [Step]

  package init(time: Timestamp, before: Timestamp?, steps: [Step]) {
    self.time = time
    self.steps = steps
    self.before = before
  }

  /// The steps that change something.
  package var changes: [Step] { steps.filter { $0.action != .leave } }
}
