import SheafModel
import SheafStore

/// One editing session: the writes between the first dirty one and the last writable close, which become one version.
struct EditingSession {
  /// The account that writes.
  let author: Int64
  /// The version's number, once an autosave or a close gave it one.
  var number: Int64?
  /// The version that the session began from; nil before any.
  var base: Int64?
  /// The contents it began from.
  var baseContent: StoredContent
  let began: Timestamp
  var cause: VersionCause
  /// Since when something is not stored; nil when everything is.
  var dirtySince: Timestamp?
  /// When something was last written.
  var lastWrite: Timestamp?
  /// Whether anything but a truncation to nothing happened since its version was made last.
  var hasWrites = false
  /// Whether the version that it numbered was made on top of the current one.
  var isOnTop = true
  /// Whether another account saved since this session's version was made last, so that what it holds is not current.
  var isPassedOver = false
  /// Chunks that only this session's version holds, with how many of its extents refer to each: freed by the renewal
  /// that replaces the last of these.
  var ownChunks: [Int64: Int] = [:]
  /// When its contents were kept in the working file, to be stored soon; nil where they were not.
  var kept: Timestamp?
  /// Whether all that was written in it went to the end of the document, whatever that was.
  var onlyAppends = false
  /// The handle that wrote last.
  var lastWriter: UInt64?
  /// The program that closed that handle, as long as nothing was written since.
  var closedBy: SavingProcess?
  /// Handles that wrote.
  var writers: [UInt64: SessionWriter] = [:]
  /// Who truncated the document by its name last.
  var truncater: Caller?

  /// The process that wrote, or that several did.
  var saver: SavingProcess {
    guard let first = writers.values.first?.saver else { return .unknown }
    return writers.values.allSatisfy { $0.saver.process == first.process } ? first : .several
  }

  /// Whether every handle that wrote was closed since.
  var isClosed: Bool { writers.values.allSatisfy(\.isFlushed) }

  /// Whether all that was written is kept and waits to be stored.
  var isKept: Bool { kept != nil && dirtySince == nil }
}

/// A handle that wrote in an editing session.
struct SessionWriter {
  /// Who writes: a large save is completed after its program closed the file.
  let account: Int64?
  let saver: SavingProcess
  /// Whether it was flushed since it wrote last.
  var isFlushed = false
  /// Whether all it wrote went to the end of the document, whatever that was.
  var onlyAppends = true
}

/// The contents on which a change of a document is based.
enum ChangeBasis {
  /// Contents that the program may have read before.
  case reading
  /// The end of the document, whatever it holds.
  case end
  /// The current contents, which a mapping shows.
  case mapping
  /// None: the document is emptied by its name, and filled with contents that a program may have made of what another
  /// one read.
  case nothing
}

/// A version that a program knows, of the item that the file was then; number 0 for none of those that the item has.
struct SeenVersion {
  let item: Int64
  let number: Int64
}

/// A session whose version is stored and only waits to be ended.
struct EndedSession {
  let version: VersionRow
  let item: ItemRow
  let inode: InodeRow
  /// The process that wrote.
  let saver: SavingProcess
}
