import ArgumentParser
import SheafModel

/// The options of every command: the library and the acting account.
struct LibraryOptions: ParsableArguments {
  @Option(
    name: .customLong("library"),
    help: ArgumentHelp(
      "The library (default: SHEAF_LIBRARY, else ~/.local/share/sheaf/library.sqlite).", valueName: "file"),
    completion: .file())
  var file: String?

  @Option(
    name: .customLong("as"),
    help: ArgumentHelp(
      "The account that acts (default: that of the mount, else the library's default account).", valueName: "handle"),
    completion: Completions.accounts)
  var handle: String?

  /// The account of `--as`.
  func account() throws(SheafError) -> AccountHandle? {
    guard let handle else { return nil }
    return try AccountHandle(handle)
  }
}

/// The form in which a command prints facts.
struct OutputOptions: ParsableArguments {
  @Flag(help: "Print JSON.")
  var json = false
}

/// A path as given, byte for byte.
struct PathArgument: ExpressibleByArgument {
  let bytes: [UInt8]

  init(bytes: [UInt8]) { self.bytes = bytes }

  init?(argument: String) { bytes = RawArguments.bytes(argument) }

  static var defaultCompletionKind: CompletionKind { .file() }
}
