import ArgumentParser
import SheafClient
import SheafModel

struct CommentCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "comment", abstract: "Comment on a document or folder.",
    discussion: """
      Who can see it finds the comment in `sheaf activity`; whom @HANDLE mentions gets a notice. Only people who can see \
      the item can be mentioned.

      Example:
        sheaf comment ~/Sheaf/Documents/plan.md "Shall we take the train, @bob@example.com?"
      """)

  @Argument(help: "A document or folder.")
  var path: PathArgument

  @Argument(help: "What to say; @HANDLE mentions.")
  var text: String

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func run() async throws {
    let comment = try await ItemTarget.with(path, library, changing: true) {
      try await $0.client.comment($0.address, text: RawArguments.readable(text))
    }
    if output.json { return try JSON.write(comment) }
    let names = comment.mentioned.map(\.name)
    try StandardOutput.line(names.isEmpty ? "Commented." : "Commented; mentioned \(names.joined(separator: ", ")).")
  }
}
