import ConformanceKit
import Foundation
import MountKit
import Testing

/// LibreOffice, whose documents are archives that it writes beside the old ones.
@Suite(.serialized) struct OfficeTests {
  static let isThere =
    (try? Command.shell("command -v soffice && /usr/bin/python3 -c 'import uno'").run().status) == 0

  @Test(.enabled(if: isThere, "LibreOffice or its Python bridge is not installed"))
  func libreOfficeKeepsEverything() throws {
    let mounted = try MountedLibrary()
    defer { mounted.breakMount() }
    try mounted.mount()
    let outside = try mounted.folder.folder("out")
    let environment: [String: String?] = ["OUT": outside, "HOME": outside]
    try mounted.shell(
      """
      echo old > "$OUT/doc.txt"; cd "$OUT"; soffice --headless --convert-to odt doc.txt > /dev/null; cd -
      cp "$OUT/doc.odt" doc.odt; chmod 640 doc.odt; setfattr -n user.color -v blue doc.odt
      """, environment: environment)
    try mounted.sheafSucceeds("label", "\(mounted.documents)/doc.odt", "first")
    let before = try DocumentFacts(mounted, "doc.odt")
    try mounted.settle()
    let lastEvent = try mounted.lastEvent()
    try mounted.shell("'\(Repository.path("Tests/EditorTests/office"))' doc.odt one two", environment: environment)
    try mounted.settle()
    let after = try DocumentFacts(mounted, "doc.odt")
    #expect(after.id == before.id && after.color == "blue" && after.mode == before.mode)
    let versions = try mounted.versions("doc.odt")
    #expect(versions.count == before.version + 2)
    #expect(versions.first?.label == "first" && !versions.contains { $0.size == 0 })
    #expect(try mounted.events(after: lastEvent) == ["sheaf.change.edit doc.odt", "sheaf.change.edit doc.odt"])
    #expect(try mounted.shell("ls -A").text == "doc.odt")
    try mounted.unmount()
    #expect(try mounted.check().isEmpty)
  }
}
