import ArgumentParser
import SheafModel

struct Recover: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Bring back what was deleted.",
    discussion: """
      A document or a whole folder comes back with its history and its id, and with the folders above it where they are \
      missing. Where the name is taken by now, it gets a (2). \
      mv out of the folder's .deleted does the same, to whatever place you name.

      Examples:
        sheaf recover ~/Sheaf/Documents/notes.md
        sheaf recover Documents/notes.md --id 5f0c…      an earlier one of that name
        sheaf recover Documents/notes.md Documents/plans
      """)

  @Argument(help: "The paths where it was.", completion: Completions.deletedPaths)
  var paths: [PathArgument]

  @Option(
    help: "Which one, where several were deleted there (default: the latest); see: sheaf deleted.",
    completion: Completions.deletedIDs)
  var id: String?

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    if id != nil, paths.count > 1 { throw ValidationError("--id says which item of one PATH is meant.") }
  }

  func run() async throws {
    var recovered: [String] = []
    var failure: SheafError?
    for path in paths {
      do {
        recovered += try await recover(path)
      } catch let error as SheafError {
        // One that cannot come back keeps no other from doing so.
        if let failure { StandardError.write(ErrorLine.text(failure, asJSON: output.json)) }
        failure = error
      }
    }
    if output.json, failure == nil || !recovered.isEmpty { try JSON.write(recovered) }
    if let failure { throw failure }
  }

  /// Brings back what was deleted at a path, and says so; returns the paths where it is now.
  private func recover(_ path: PathArgument) async throws -> [String] {
    let (paths, left) = try await ItemTarget.with(path, library, changing: true) { target in
      let paths = try await ProgressLine.during("Recovering") { progress in
        try await target.client.recover(target.address, id: id, progress: progress)
      }
      let left = try await output.json ? nil : target.client.deletedTrees(target.address, limit: 1)
      return (paths, left.map { $0.trees.count + $0.more } ?? 0)
    }
    if !output.json { try tell(paths, at: path, left: left) }
    return paths
  }

  private func tell(_ paths: [String], at path: PathArgument, left: Int) throws {
    let first = paths.first ?? ""
    let isTree = paths.dropFirst().allSatisfy { $0.hasPrefix(first + "/") }
    let words =
      if isTree {
        first + (paths.count < 2 ? "" : " with \(Format.count(paths.count - 1, "item")) in it")
      } else {
        "\(Format.count(paths.count, "item")) in \(Self.folder(of: paths))"
      }
    try StandardOutput.line("Recovered \(words).".escapingControls)
    if left > 0 {
      let (verb, place) = (left == 1 ? "is" : "are", path.bytes.shellWord)
      let items = Format.count(left, "more item")
      try StandardOutput.line("\(items) \(verb) in the trash there; see: sheaf deleted \(place)")
    }
  }

  /// The folder that all of some paths lie in.
  static func folder(of paths: [String]) -> String {
    let parts = paths.map { $0.split(separator: "/").dropLast() }
    guard let first = parts.first else { return "" }
    var common = first
    for other in parts.dropFirst() {
      common = common.prefix(zip(common, other).prefix { $0 == $1 }.count)
    }
    return common.joined(separator: "/")
  }
}
