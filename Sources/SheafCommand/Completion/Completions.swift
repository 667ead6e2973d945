import ArgumentParser
import Glibc
import SheafClient
import SheafLibrary
import SheafModel

/// Completions of a shell for handles, versions, labels and deleted items. They ask the library, in the name of the
/// account that would act, so nobody is offered anything that they do not see.
///
/// After a failure they offer nothing, and print nothing: the command itself says why.
enum Completions {
  /// How long a person waits for what a shell offers.
  private static let patience: Duration = .seconds(3)
  /// Deleted items that are offered at most.
  private static let deletedLimit = 1000

  // MARK: - Kinds

  /// The accounts of the library.
  static let accounts = kind { line, _ in
    try await LibraryConnection.with(LibraryChoice.location(named: line.library)) { connection in
      try await connection.client.accounts().map(\.handle.description)
    }
  }

  /// People: the accounts of the library; for a user to whom root gave a mount, who may not know these, those who share
  /// something with the account.
  static let people = kind { line, _ in
    try await line.with { target in
      if let all = try? await target.client.accounts() { return all.map(\.handle.description) }
      let shares = try await target.client.shares(of: target.address.account)
      return (shares.withMe.map(\.owner) + shares.invitations.map(\.owner)).map(\.description)
    }
  }

  /// The participants of the share of the PATH.
  static let participants = kind { line, _ in
    try await line.withPath { target in
      try await target.client.participants(target.address).filter { $0.role != .owner }.map(\.handle.description)
    }
  }

  /// The people who ask for access to the PATH.
  static let requesters = kind { line, _ in
    try await line.withPath { target in
      try await target.client.accessRequests(target.address).map(\.handle.description)
    }
  }

  /// The numbers of the PATH's versions, latest first, and their labels.
  static let versions = kind { line, _ in
    try await line.withPath { target in
      let versions = try await target.client.versions(of: target.address).reversed()
      return versions.map { "\($0.number)" } + versions.compactMap(\.label)
    }
  }

  /// The labels of the PATH's versions.
  static let labels = kind { line, _ in
    try await line.withPath { target in try await target.client.versions(of: target.address).compactMap(\.label) }
  }

  /// The ids of what was deleted at the PATH.
  static let deletedIDs = kind { line, _ in
    try await line.withPath { target in
      let path = target.name
      return try await target.client.deleted(target.address).filter { $0.path == path }.map(\.id)
    }
  }

  /// Paths of what was deleted, and the folders on the way.
  static let deletedPaths = kind { line, typed in try await deleted(line, typed) }

  /// As ``deletedPaths``, with what is there.
  static let anyPaths = kind { line, typed in
    try await deleted(line, typed) + names(in: typed.folder) { _ in true }
  }

  // MARK: - Asking

  private static func kind(
    _ offered: @escaping @Sendable (CommandLineWords, TypedWord) async throws -> [String]
  ) -> CompletionKind {
    .custom { words, index, _ in
      let line = CommandLineWords(words, before: index)
      let typed = TypedWord(words, at: index)
      let asked = Task {
        let found = (try? await offered(line, typed)) ?? []
        try? await LibraryConnection.closeOwn()
        return found
      }
      // A process that does not answer is not waited for.
      let watch = Task {
        try await Task.sleep(for: patience)
        Glibc._exit(0)
      }
      defer { watch.cancel() }
      let fitting = typed.fitting(await asked.value)
      if isForBash { return fitting.filter(isInsertedQuoted).map(quoted) }
      return CompletionShell.requesting == .zsh ? fitting.map(escaped) : fitting
    }
  }

  /// A word for `_describe` of zsh, which takes what follows a colon for a description.
  private static func escaped(_ word: String) -> String {
    word.replacing("\\", with: "\\\\").replacing(":", with: "\\:")
  }

  private static var isForBash: Bool { CompletionShell.requesting == .bash }

  /// A word that bash takes as it is. It expands what is offered to it like a command line, and would run commands that
  /// somebody put into the name of a file.
  private static func quoted(_ word: String) -> String { "'" + word.replacing("'", with: "'\\''") + "'" }

  /// Whether bash quotes a word when it inserts that. In one that names no file it takes `$` and backticks for what a
  /// person typed, and would run the commands in a label or in the name of something deleted.
  private static func isInsertedQuoted(_ word: String) -> Bool { !word.contains { "$`".contains($0) } }

  private static func deleted(_ line: CommandLineWords, _ typed: TypedWord) async throws -> [String] {
    let folder = typed.folder.isEmpty ? "." : typed.folder
    let argument = PathArgument(bytes: RawArguments.bytes(folder))
    var found: [String]?
    if case .mount = try? PathResolution.current().place(of: argument.bytes) {
      found = try await ItemTarget.with(argument, line.options) { target in
        let place = target.name + "/"
        return try await target.client.deletedTrees(target.address, limit: deletedLimit).trees.map(\.item.path)
          .filter { $0.hasPrefix(place) }.map { typed.folder + $0.dropFirst(place.count) }
      }
    }
    if found == nil {
      found = try await line.with { target in
        try await target.client.deletedTrees(target.address, limit: deletedLimit).trees.map(\.item.path)
      }
    }
    var ids: [String] = []
    if typed.mayBeID {
      ids = try await line.with { target in
        try await target.client.deletedTrees(target.address, limit: deletedLimit).trees.map { "id:\($0.item.id)" }
      }
    }
    // bash marks folders itself.
    let mark = isForBash ? "" : "/"
    return (found ?? []) + ids + names(in: typed.folder) { $0 }.map { $0 + mark }
  }

  /// Paths of the names in a folder of the machine, as they are typed; hidden ones are left out.
  ///
  /// - Parameter isWanted: whether to offer a name, by whether it is a folder.
  private static func names(in folder: String, _ isWanted: (Bool) -> Bool) -> [String] {
    guard let directory = opendir(CommandLineWords.expanded(folder.isEmpty ? "." : folder)) else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let isFolder = entry.pointee.d_type == UInt8(DT_DIR)
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(validatingCString: $0) }
      }
      guard let name, !name.hasPrefix("."), isWanted(isFolder) else { continue }
      names.append(folder + name)
    }
    return names.sorted()
  }
}

/// The words of a command that is being typed, as far as they decide what is offered.
struct CommandLineWords: Sendable {
  /// The commands that have commands of their own.
  private static let groups: Set<String> = ["account", "library", "participant", "requests"]

  private(set) var library: String?
  private var handle: String?
  /// The arguments after the command's name that are no options.
  private var plain: [String] = []

  /// - Parameter index: the word that is being typed, which does not count.
  init(_ words: [String], before index: Int) {
    var rest = words.prefix(max(0, index)).dropFirst().map(Self.unquoted)[...]
    rest += words.dropFirst(index + 1).map(Self.unquoted)
    var names = 1
    while let word = rest.popFirst() {
      guard word.hasPrefix("-"), word != "-" else {
        if names > 0 {
          names += Self.groups.contains(word) ? 0 : -1
        } else {
          plain.append(word)
        }
        continue
      }
      let parts = word.split(separator: "=", maxSplits: 1).map(String.init)
      guard let option = parts.first, Self.optionsWithValue.contains(option) else { continue }
      let value = parts.count > 1 ? parts[1] : rest.popFirst()
      if option == "--library" { library = value.map(Self.expanded) }
      if option == "--as" { handle = value }
    }
  }

  /// The options of all commands that are followed by a value.
  private static let optionsWithValue: Set<String> = {
    var found: Set<String> = []
    var open: [any ParsableCommand.Type] = [Sheaf.self]
    while let command = open.popLast() {
      open += command.configuration.subcommands + command.configuration.groupedSubcommands.flatMap(\.subcommands)
      found.formUnion(Self.valueOptions(of: command))
    }
    return found
  }()

  private static func valueOptions(of command: any ParsableCommand.Type) -> [String] {
    command.helpMessage(columns: 200).split(separator: "\n").compactMap { line in
      line.firstMatch(of: /^ +(?:-\w, )?(--[a-z-]+) </).map { String($0.1) }
    }
  }

  var options: LibraryOptions {
    var options = LibraryOptions()
    (options.file, options.handle) = (library, handle)
    return options
  }

  /// Runs `body` with everything of the account that would act.
  func with(_ body: (ItemTarget) async throws -> [String]) async throws -> [String] {
    try await ItemTarget.with(optional: nil, options, body: body)
  }

  /// Runs `body` with what the PATH means; offers nothing without one.
  func withPath(_ body: (ItemTarget) async throws -> [String]) async throws -> [String] {
    guard let path = plain.first else { return [] }
    let argument = PathArgument(bytes: RawArguments.bytes(Self.expanded(path)))
    return try await ItemTarget.with(argument, options, body: body)
  }

  /// A word as the command gets it: shells hand over what was typed, with its quotes.
  static func unquoted(_ word: String) -> String {
    var (text, quote, rest) = ("", Character?.none, word[...])
    while let character = rest.popFirst() {
      if character == "\\", quote != "'" {
        text += rest.popFirst().map(String.init) ?? ""
      } else if character == quote {
        quote = nil
      } else if quote == nil, character == "'" || character == "\"" {
        quote = character
      } else {
        text.append(character)
      }
    }
    return text
  }

  /// A path with the home folder for `~`.
  static func expanded(_ path: String) -> String {
    guard path == "~" || path.hasPrefix("~/"), let home = getenv("HOME").map({ String(cString: $0) }) else {
      return path
    }
    return home + path.dropFirst()
  }
}

/// The word that is being typed.
struct TypedWord: Sendable {
  private let word: String

  init(_ words: [String], at index: Int) {
    word = words.indices.contains(index) ? CommandLineWords.unquoted(words[index]) : ""
  }

  /// The folder of a path that is being typed, with its `/`.
  var folder: String { word.lastIndex(of: "/").map { String(word[...$0]) } ?? "" }

  /// Whether an id, which names items that have no name to type, may be meant.
  var mayBeID: Bool { word.hasPrefix("id") }

  /// Those that go on as the word begins, each once. What has control characters, which would end it, or bytes that are
  /// no UTF-8 is left out: no command would take it.
  func fitting(_ offered: [String]) -> [String] {
    var known: Set<String> = []
    return offered.filter {
      $0.hasPrefix(word) && $0.escapingControls == $0 && !$0.unicodeScalars.contains("\u{FFFD}")
        && known.insert($0).inserted
    }
  }
}

extension Sheaf {
  /// The completion script of bash, whose words end at `@` and `:` unless it is told otherwise: handles and ids are
  /// words.
  static var bashCompletionScript: String {
    completionScript(for: .bash) + "\nCOMP_WORDBREAKS=${COMP_WORDBREAKS//[@:]/}\n"
  }
}
