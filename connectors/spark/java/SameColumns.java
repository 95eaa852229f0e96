import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;

/**
 * The ids of columns at the top of a plan that was made of another one. Rules of Spark keep columns in their order, but
 * not always their ids: a union of which one child is left has the columns of that child.
 */
public class SameColumns {
    private final LogicalPlan made;
    private final LogicalPlan known;

    public SameColumns(LogicalPlan made, LogicalPlan known) {
        this.made = made;
        this.known = known;
    }

    /** The plan with the ids of the other one; the plan itself where it has them, or has other columns. */
    public LogicalPlan plan() {
        java.util.ArrayList columns = new java.util.ArrayList();
        boolean isSame = true;
        if (made.output().size() != known.output().size()) {
            return made;
        }
        scala.collection.Iterator wanted = known.output().iterator();
        scala.collection.Iterator own = made.output().iterator();
        while (wanted.hasNext()) {
            Attribute before = (Attribute) wanted.next();
            Attribute after = (Attribute) own.next();
            boolean isItself = before.exprId().equals(after.exprId());
            isSame = isSame && isItself;
            if (!after.dataType().equals(before.dataType()) || !isItself && made.outputSet().contains(before)) {
                return made;
            }
            columns.add(isItself ? after : new Alias(after, before.name(), before.exprId(), before.qualifier(),
                scala.Option.apply(before.metadata()), sequence(new java.util.ArrayList())));
        }
        return isSame ? made : new Project(sequence(columns), made);
    }

    static scala.collection.immutable.Seq sequence(java.util.List items) {
        return scala.jdk.javaapi.CollectionConverters.asScala(items).toSeq();
    }
}
