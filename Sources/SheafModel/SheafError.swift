/// A failure: its subject, its reason and what to do about it, with a kind that each door translates by one table.
///
/// The mount turns ``Kind`` into an errno, the HTTP service into a status, the command into its exit status.
package struct SheafError: Error, Hashable, Sendable, Codable, CustomStringConvertible {
  /// The kinds of failure, named for what the caller can do about them.
  package enum Kind: String, Sendable, Codable, CaseIterable {
    /// No such item, version, account or link (ENOENT).
    case notFound
    /// The name is taken (EEXIST).
    case exists
    /// A component of the path is no folder (ENOTDIR).
    case notDirectory
    /// The operation does not apply to folders (EISDIR).
    case isDirectory
    /// The folder is not empty (ENOTEMPTY).
    case notEmpty
    /// The permission bits or the share refuse it (EACCES).
    case accessDenied
    /// The operation is not permitted for this item or caller (EPERM).
    case notPermitted
    /// The arguments make no sense (EINVAL).
    case invalid
    /// A name is longer than 255 bytes, or a path or symbolic link longer than PATH_MAX (ENAMETOOLONG).
    case nameTooLong
    /// The file would be larger than a document can be (EFBIG).
    case tooLarge
    /// The extended attribute's value is larger than one can be (E2BIG).
    case attributeTooLarge
    /// The disk that holds the library is full (ENOSPC).
    case noSpace
    /// The item has as many links as it can have (EMLINK).
    case tooManyLinks
    /// Reading or writing the library failed (EIO).
    case inputOutput
    /// The operation would cross a border between two owners' trees (EXDEV).
    case crossDevice
    /// Not supported here (EOPNOTSUPP).
    case notSupported
    /// The extended attribute does not exist (ENODATA).
    case noAttribute
    /// No such device or address, as SEEK_DATA past the last data answers (ENXIO).
    case noSuchAddress
    /// The thing is in use (EBUSY).
    case busy
    /// The file system is mounted read-only (EROFS).
    case readOnly
    /// The open file description was not opened for this (EBADF).
    case badDescriptor
    /// The library is damaged or not a library; `sheaf check` tells more (EIO).
    case corrupt
    /// The library was written by a newer program (EIO).
    case newerFormat
    /// It was there, and retention dropped it (ENOENT).
    case gone
    /// The process that owns the library does not answer.
    case unavailable
    /// A hub has the contents, and cannot be reached (EHOSTUNREACH).
    case unreachable
  }

  package let kind: Kind
  /// The thing that failed: a path, a handle, a file.
  package let subject: String
  /// The reason, in words that follow the subject.
  package let reason: String
  /// Advice what to do about it; nil if there is none.
  package let advice: String?
  /// The times that subject and reason tell, in UTC (``Timestamp/secondsText``): a command shows them as they are where
  /// it runs. Nil for none.
  package let times: [Timestamp]?

  package init(
    _ kind: Kind, subject: String = "", reason: String? = nil, advice: String? = nil, times: [Timestamp]? = nil
  ) {
    self.kind = kind
    self.times = times
    self.subject = subject
    self.reason = reason ?? Self.defaultReason(kind)
    self.advice = advice
  }

  /// One line: subject, reason, advice.
  package var description: String {
    var line = subject.isEmpty ? reason : "\(subject): \(reason)"
    if let advice { line += "; \(advice)" }
    return line
  }

  /// The same failure of another subject.
  package func about(_ subject: String) -> SheafError {
    SheafError(kind, subject: subject, reason: reason, advice: advice, times: times)
  }

  /// The same failure with other advice.
  package func advising(_ advice: String?) -> SheafError {
    SheafError(kind, subject: subject, reason: reason, advice: advice, times: times)
  }

  /// The same failure, named as one of a library where a part of that is damaged.
  ///
  /// - Parameter library: The library's file.
  package func naming(library: String) -> SheafError {
    guard kind == .corrupt, !subject.hasPrefix("/") else { return self }
    return SheafError(
      kind, subject: library, reason: subject.isEmpty ? reason : "\(subject) \(reason)", advice: advice)
  }

  private static func defaultReason(_ kind: Kind) -> String {
    switch kind {
    case .notFound: "no such item"
    case .exists: "the name is taken"
    case .notDirectory: "is not a folder"
    case .isDirectory: "is a folder"
    case .notEmpty: "the folder is not empty"
    case .accessDenied: "access denied"
    case .notPermitted: "not permitted"
    case .invalid: "invalid argument"
    case .nameTooLong: "the name is too long"
    case .tooLarge: "the document would be too large"
    case .attributeTooLarge: "the attribute's value is too large"
    case .noSpace: "no space left on the disk that holds the library"
    case .tooManyLinks: "too many links"
    case .inputOutput: "reading or writing the library failed"
    case .crossDevice: "lies in another owner's tree"
    case .notSupported: "not supported"
    case .noAttribute: "no such attribute"
    case .noSuchAddress: "no data there"
    case .busy: "is in use"
    case .readOnly: "is mounted read-only"
    case .badDescriptor: "is not open for this"
    case .corrupt: "is damaged"
    case .newerFormat: "was written by a newer version of Sheaf"
    case .gone: "was dropped by retention"
    case .unavailable: "does not answer"
    case .unreachable: "is at a hub that cannot be reached"
    }
  }
}
