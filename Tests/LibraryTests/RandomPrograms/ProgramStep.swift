/// One step of a random program: who does what to what.
///
/// Its text, `alice.0 rename f/doc team/doc`, is what a failure prints and what `SHEAF_PROGRAM` replays.
struct ProgramStep: Hashable, CustomStringConvertible, Sendable {
  enum Verb: String, CaseIterable, Sendable {
    /// `open SLOT PATH r|rw|creat|trunc`; the other actions on an open file name its slot.
    case open, write, append, writeKnown, read, truncate, fsync, flush, close
    /// Writes to an open file what it holds already.
    case rewrite
    /// The kernel writes back what a mapping of an open file changed.
    case mapped
    /// Opens with O_TRUNC, writes and closes.
    case save
    case rename, exchange, link, unlink, mkdir, rmdir
    /// Commands.
    case recover, share, unshare, invite, remove, leave, label, restore, resolve, purge, purgeVersion
    /// `give PATH PERSON`: offers what an account has to another one, which accepts it.
    case give
    /// `takeOut FOLDER NAME PATH`: renames what was deleted from a folder out of its `.deleted`.
    case takeOut
    /// `goBack FOLDER MILLISECONDS`: makes the folder what it was that long ago.
    case goBack
    /// `empty FOLDER`: destroys all that was deleted below a folder.
    case empty
    /// `look`: the account reads all that it sees, which must be what it may see.
    case look
    /// `peek PATH NUMBER`: opens a version, and reads it again after each step from then on.
    case peek
    case compact
    /// Upkeep, as every quarter of a second; `wait SECONDS` lets time pass before it.
    case upkeep, wait
    /// The process of the library ends in order, or by kill -9, and another one opens it.
    case restart, crash
  }

  struct Actor: Hashable, Sendable {
    let person: People.Name
    /// One of a few programs; several people may act in one.
    let program: Int
  }

  let actor: Actor
  let verb: Verb
  let arguments: [String]

  init(_ actor: Actor, _ verb: Verb, _ arguments: [String] = []) {
    self.actor = actor
    self.verb = verb
    self.arguments = arguments
  }

  /// - Returns: Nil for a line that is no step.
  init?(_ line: String) {
    let words = line.split(separator: " ").map(String.init)
    guard words.count >= 2, let verb = Verb(rawValue: words[1]) else { return nil }
    let actor = words[0].split(separator: ".")
    guard actor.count == 2, let person = People.Name(rawValue: String(actor[0])), let program = Int(actor[1]) else {
      return nil
    }
    self.actor = Actor(person: person, program: program)
    self.verb = verb
    arguments = words.dropFirst(2).map { $0 == "/" ? "" : $0.replacing("%20", with: " ") }
  }

  var description: String {
    (["\(actor.person.rawValue).\(actor.program)", verb.rawValue] + arguments.map(Self.word)).joined(separator: " ")
  }

  /// An argument as a word of a step's text: `/` for what belongs to the people.
  private static func word(_ argument: String) -> String {
    argument.isEmpty ? "/" : argument.replacing(" ", with: "%20")
  }

  /// The first and second argument, empty where there is none.
  var first: String { arguments.first ?? "" }
  var second: String { arguments.dropFirst().first ?? "" }

  /// The steps of a text with one on each line.
  static func program(_ text: String) -> [ProgramStep] {
    text.split(separator: "\n").compactMap { ProgramStep(String($0)) }
  }
}

/// A rule that a program broke.
struct Violation: Error, CustomStringConvertible {
  /// The invariant, the same for all failures of one kind.
  let rule: String
  let what: String
  var description: String { "\(rule): \(what)" }
}
