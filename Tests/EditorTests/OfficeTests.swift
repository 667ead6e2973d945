import ConformanceKit
import Foundation
import MountKit
import Testing

/// LibreOffice, whose documents are archives that it writes beside the old ones.
@Suite(.serialized) struct OfficeTests {
  static let isThere =
    (try? Command.shell("command -v soffice && /usr/bin/python3 -c 'import uno'").run().status) == 0

  @Test(.enabled(if: isThere, "LibreOffice or its Python bridge is not installed"), arguments: SharedPlace.allCases)
  func libreOfficeKeepsEverything(_ place: SharedPlace) throws {
    try withSharedMounts { people in
      let mounted = people.library
      let outside = try mounted.folder.folder("out")
      let environment: [String: String?] = ["OUT": outside, "HOME": outside]
      try mounted.shell(
        #"cd "$OUT"; echo old >doc.txt; soffice --headless --convert-to odt doc.txt >/dev/null"#,
        environment: environment)
      try people.shell(place.preparation("doc.odt", making: "cp '\(outside)/doc.odt' ."))
      let folder = place.folder(people)
      let doc = "\(folder)/doc.odt"
      try mounted.sheafSucceeds("label", doc, "first")
      let before = try DocumentFacts(mounted, doc)
      try mounted.settle()
      let lastEvent = try mounted.lastEvent()
      try mounted.shell(
        "'\(Repository.path("Tests/EditorTests/office"))' doc.odt one two", in: folder, environment: environment)
      try mounted.settle()
      let after = try DocumentFacts(mounted, doc)
      #expect(after.id == before.id && after.color == "blue" && after.mode == before.mode)
      #expect(after.share == before.share)
      let versions = try mounted.versions(doc)
      #expect(versions.count == before.version + 2)
      #expect(versions.first?.label == "first" && !versions.contains { $0.size == 0 })
      let edit = "sheaf.change.edit \(place.eventPath("doc.odt"))"
      #expect(try mounted.events(after: lastEvent) == [edit, edit])
      #expect(try mounted.shell("ls -A", in: folder).text == "doc.odt")
      #expect(try mounted.shell("cmp doc.odt '\(place.otherPath(people, "doc.odt"))'", in: folder).text == "")
    }
  }
}
